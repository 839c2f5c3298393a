# One image for gateway, worker and migrations. No build tools and no root in what runs.

FROM python:3.11-slim AS build
WORKDIR /src
RUN python -m venv /opt/catchment
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY gateway gateway
COPY connectors connectors
COPY workers workers
COPY migrations migrations
RUN python -m pip wheel --no-deps --wheel-dir /wheels . \
    && /opt/catchment/bin/python -m pip install -c constraints.txt /wheels/catchment-*.whl

FROM python:3.11-slim
# A fixed id, so that volumes keep their owner from one image to the next.
RUN groupadd --gid 10001 catchment \
    && useradd --uid 10001 --gid catchment --no-create-home --home-dir /var/lib/catchment catchment \
    && install -d -o catchment -g catchment -m 0700 /var/lib/catchment /var/lib/catchment-metrics
COPY --from=build /opt/catchment /opt/catchment
ENV PATH=/opt/catchment/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    CATCHMENT_DATA_DIR=/var/lib/catchment
USER 10001:10001
WORKDIR /var/lib/catchment
ENTRYPOINT ["catchment"]
CMD ["--help"]
