"""The driver that enqueues by HTTP: sixteen connections that stay, each with the next request after an answer.

BENCHMARK_URL is the server's address, BENCHMARK_DATABASE the database's, BENCHMARK_TABLE the one that is filled.
"""

import asyncio
import json
import os
import re
import time
from typing import Any

import psycopg

from benchmarks.driver import serve

CONNECTIONS = 16
BATCH = 1000
HOST, _, PORT = os.environ["BENCHMARK_URL"].rpartition(":")
TABLE = os.environ["BENCHMARK_TABLE"]
JOB = {"type": "bench.async", "payload": {}}


def _request(path: str, body: Any) -> bytes:
    content = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: {HOST}:{PORT}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content


async def _ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> int:
    """The status of the answer, which is read whole."""
    writer.write(request)
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    [length] = re.findall(r"content-length: *(\d+)", head.lower())
    await reader.readexactly(int(length))
    return int(head.split(" ", 2)[1])


async def _send(requests: list[bytes]) -> None:
    waiting = iter(requests)

    async def connection() -> None:
        reader, writer = await asyncio.open_connection(HOST, int(PORT))
        try:
            for request in waiting:
                status = await _ask(reader, writer, request)
                assert status in (200, 201), f"the server answered {status}"
        finally:
            writer.close()

    await asyncio.gather(*(connection() for _ in range(min(CONNECTIONS, len(requests)))))


def _timed(requests: list[bytes]) -> float:
    began = time.perf_counter()
    asyncio.run(_send(requests))
    return time.perf_counter() - began


def _row(text: str) -> Any:
    with psycopg.connect(os.environ["BENCHMARK_DATABASE"], autocommit=True) as connection:
        cursor = connection.execute(text)
        return cursor.fetchone() if cursor.description else None


def one_by_one(jobs: int) -> float:
    """Seconds for so many requests of one job."""
    return _timed([_request("/api/jobs", JOB)] * jobs)


def bulk(jobs: int) -> float:
    """Seconds for so many jobs, a thousand a request."""
    sizes = [min(BATCH, jobs - done) for done in range(0, jobs, BATCH)]
    return _timed([_request("/api/jobs/batch", {"jobs": [JOB] * size}) for size in sizes])


def clear() -> None:
    """Forget all."""
    _row(f"TRUNCATE {TABLE} CASCADE")


def left() -> int:
    """How many are there."""
    return int(_row(f"SELECT count(*) FROM {TABLE}")[0])


if __name__ == "__main__":
    serve({"clear": clear, "one_by_one": one_by_one, "bulk": bulk, "left": left})
