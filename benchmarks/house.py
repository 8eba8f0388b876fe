"""A throw-away PostgreSQL and real workers, for benchmarks that need a house of their own."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.kit.processes import PROJECT, WorkerProcess
from turno.launcher.postgres import QUICK, PrivatePostgres


@contextmanager
def house(workers: int, queues: str, *, durable: bool = False) -> Iterator[tuple[str, list[WorkerProcess]]]:
    """The database's URL and the workers, which serve `queues` and have the types of `benchmarks.nothing`.

    `durable`: each commit waits for the disk, as in production.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="turno-benchmark-")))
        folder.chmod(0o755)
        server = PrivatePostgres(folder / "postgres", options={} if durable else QUICK)
        stack.callback(server.stop, "immediate")
        server.start()
        url = server.url_of("postgres")
        environment = _environment(url, folder)
        subprocess.run([sys.executable, "manage.py", "migrate", "-v", "0"], cwd=PROJECT, env=environment, check=True)
        started = []
        for number in range(workers):
            worker = WorkerProcess(folder, f"worker-{number + 1}", queues, environment)
            stack.callback(worker.close)
            started.append(worker.wait_ready())
        yield url, started


def _environment(url: str, folder: Path) -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("TURNO_", "DJANGO_"))}
    return environment | {
        "TURNO_DATABASE__URL": url,
        "TURNO_HANDLERS": '["benchmarks.nothing"]',
        "TURNO_SAMPLES__ENABLED": "false",
        "TURNO_WORKER__RUN_DIR": str(folder / "run"),
        "TURNO_LANG": "en",
        "PYTHONPATH": str(PROJECT),
    }
