# One image for the web process, the workers and the commands: docker-compose.yml says which one a container runs.
FROM python:3.13-slim-bookworm AS builder

ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_NO_INPUT=1
# Packages that only some need: `--build-arg EXTRA=azure` adds requirements/azure.txt.
ARG EXTRA=
WORKDIR /app
# Wheels only: there is no compiler here, and libpq comes inside psycopg's. The packages change less often than the code.
COPY requirements requirements
RUN python -m venv --without-pip /opt/venv \
    && python -m pip --python /opt/venv/bin/python install --only-binary :all: --require-hashes \
        -r requirements/base.txt ${EXTRA:+-r "requirements/$EXTRA.txt"}
COPY . .
# Readable for whoever runs it, under whatever umask the project was cloned. Compiled here, since nobody may write there
# later: a health check starts in half the time.
RUN chmod -R a+rX,go-w /app && python -m compileall -q jobs workers dashboard turno manage.py


FROM python:3.13-slim-bookworm

LABEL org.opencontainers.image.title="Turno" \
      org.opencontainers.image.description="Job scheduling and processing on PostgreSQL" \
      org.opencontainers.image.licenses="MIT"
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONFAULTHANDLER=1 \
    HOME=/var/lib/turno \
    TURNO_WORKER__RUN_DIR=/var/lib/turno/run
# A number, so that whoever starts the container can see that it is not root. Only its own folder is writable for it.
RUN groupadd --gid 10001 turno \
    && useradd --uid 10001 --gid turno --no-create-home --home-dir /var/lib/turno --shell /usr/sbin/nologin turno \
    && install --directory --owner turno --group turno --mode 700 /var/lib/turno /var/lib/turno/run
COPY --from=builder /opt/venv /opt/venv
COPY --from=builder /app /app
WORKDIR /app
USER 10001:10001
EXPOSE 8080
STOPSIGNAL SIGTERM
ENTRYPOINT ["python"]
CMD ["-m", "daphne", "-b", "0.0.0.0", "-p", "8080", "turno.asgi:application"]
