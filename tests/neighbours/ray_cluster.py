"""Runs the fleet example on a local Ray cluster of three nodes while two of its workers are killed.

Started by the neighbours' Python: ``ray_cluster.py EXAMPLE TASKS REPOSITORY SHARED``.
"""

import runpy
import sys
import threading
import time

import psutil
import ray
from ray.cluster_utils import Cluster

KILLS = 2
TRIES = 3
"""Times that a node is started: Ray gives it 30 seconds, which a busy machine exceeds."""


def kill_workers() -> None:
    killed, deadline = 0, time.monotonic() + 120
    while killed < KILLS and time.monotonic() < deadline:
        time.sleep(4)
        for process in psutil.process_iter(["cmdline"]):
            if (process.info["cmdline"] or [""])[0].startswith("ray::work"):
                process.kill()
                killed += 1
                print("killed a worker", flush=True)
                break


def add_node(cluster: Cluster) -> None:
    for left in reversed(range(TRIES)):
        try:
            cluster.add_node(num_cpus=1)
        except Exception as error:
            if not left:
                raise
            print(f"a node did not start: {error}", flush=True)
        else:
            return


if __name__ == "__main__":
    example, *sys.argv = sys.argv[1:]
    sys.argv.insert(0, example)
    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
    )
    for _ in range(2):
        add_node(cluster)
    plain_init = ray.init
    ray.init = lambda: plain_init(address=cluster.address)
    threading.Thread(target=kill_workers, daemon=True).start()
    runpy.run_path(example, run_name="__main__")
