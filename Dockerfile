# tui-agent in a container: `docker build -t tui-agent .`, then `docker run --rm -it tui-agent --demo`.
# A project and a key: docker run --rm -it -v "$PWD:/work" -e OPENAI_API_KEY tui-agent
FROM python:3.13-slim AS build
COPY . /src
RUN python -m venv /opt/tui-agent \
 && /opt/tui-agent/bin/pip install --no-cache-dir --no-deps --require-hashes -r /src/requirements.lock \
 && /opt/tui-agent/bin/pip install --no-cache-dir --no-deps --no-build-isolation /src

FROM python:3.13-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends git make \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --create-home --uid 1000 agent \
 && mkdir /work /data \
 && chown agent /work /data
COPY --from=build /opt/tui-agent /opt/tui-agent
ENV PATH=/opt/tui-agent/bin:$PATH TUI_AGENT_DATA_DIR=/data TERM=xterm-256color COLORTERM=truecolor
USER agent
WORKDIR /work
# Sessions outlive the container where a volume is mounted here.
VOLUME /data
ENTRYPOINT ["tui-agent"]
