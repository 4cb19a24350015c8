# syntax=docker/dockerfile:1
# One image for every role: `docker run headrace api`, `… worker`, `… scheduler`, `… relay`, `… migrate`.
# It is built from the wheel in dist/ (`python -m build`), so that what was tested is what runs.
ARG PYTHON=3.13-slim-bookworm

FROM python:${PYTHON} AS build
WORKDIR /build
COPY requirements.lock requirements-archive.lock requirements-removal.lock ./
COPY deploy/image/install ./
COPY dist/ dist/
RUN ./install /opt/headrace dist

FROM python:${PYTHON}
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Headrace" \
      org.opencontainers.image.description="A task platform on one PostgreSQL" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.revision="${REVISION}"
# tini reaps the children that end after their parent, and passes signals on.
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install --yes --no-install-recommends tini \
 && rm -rf /var/lib/apt/lists/* \
 && groupadd --gid 10001 headrace \
 && useradd --uid 10001 --gid headrace --no-create-home --home-dir /var/lib/headrace --shell /usr/sbin/nologin headrace \
 && install -d -o headrace -g headrace -m 0700 /var/lib/headrace
COPY --from=build /opt/headrace /opt/headrace
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
