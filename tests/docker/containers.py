"""The containers of the Compose file as plain processes: the image's files, its entry point, the file's very commands.

Only what a machine without Docker can't give differs: addresses and ports, and the folder of the lock files.
"""

import json
import re
import subprocess
import sys
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

from pika.adapters.blocking_connection import BlockingChannel

from tests.docker.composed import PROJECT, SECRETS
from tests.kit.processes import SHORT, database_url
from turno.launcher import ports
from workers import tree

_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def consumers(channel: BlockingChannel, queue: str) -> int:
    """How many consume a queue that exists."""
    return int(channel.queue_declare(queue, passive=True).method.consumer_count)


class Containers:
    """`services` are the file's, `image` a folder with what the image holds below /app."""

    def __init__(self, services: Mapping[str, Any], image: Path, folder: Path, broker: str, redis: str) -> None:
        self._services, self._image, self._folder = services, image, folder
        self.port = ports.free_port()
        self._replaced = {
            f"postgresql://turno:{SECRETS['POSTGRES_PASSWORD']}@postgres:5432/turno": database_url(),
            f"amqp://turno:{SECRETS['RABBITMQ_PASSWORD']}@rabbitmq:5672/": broker,
            f"redis://:{SECRETS['REDIS_PASSWORD']}@redis:6379/0": redis,
            "/var/lib/turno/run": str(folder / "run"),
            "127.0.0.1:8080": f"127.0.0.1:{self.port}",
            "0.0.0.0": "127.0.0.1",  # noqa: S104  (tests listen on loopback alone)
        }
        self.queue_prefix = f"docker-{uuid4().hex[:8]}"  # tests share the node
        self.started: dict[str, subprocess.Popen[bytes]] = {}
        entry = re.search(r"^ENTRYPOINT (.+)$", (PROJECT / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)
        assert entry is not None
        self._entry: list[str] = json.loads(entry[1])

    def run(self, service: str, timeout: float = 60.0) -> subprocess.CompletedProcess[str]:
        """Run a service's command to its end."""
        return self._run([*self._entry, *self._services[service]["command"]], service, timeout)

    def inside(self, service: str, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command as `docker compose exec` does."""
        return self._run(list(command), service, 120.0)

    def start(self, service: str) -> None:
        """Start a service."""
        command = self._words([*self._entry, *self._services[service]["command"]])
        with (self._folder / f"{service}.log").open("ab") as log:
            self.started[service] = subprocess.Popen(
                command, cwd=self._image, env=self._environment(service), stdout=log, stderr=log
            )

    def health(self, service: str) -> subprocess.CompletedProcess[str]:
        """Run a service's health check, with the time that Docker gives it."""
        test = self._services[service]["healthcheck"]
        assert test["test"][0] == "CMD"
        return self._run(test["test"][1:], service, float(test["timeout"].removesuffix("s")))

    def healthy(self, service: str) -> bool:
        """Whether it is; fails when it has ended."""
        assert self.started[service].poll() is None, self.log(service)
        return self.health(service).returncode == 0

    def log(self, service: str) -> str:
        """What it has said."""
        return (self._folder / f"{service}.log").read_text(errors="replace")[-4000:]

    def ask(self, path: str, body: object = None) -> Any:
        """The web process's answer to a request with the key."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"X-Turno-Key": SECRETS["TURNO_API__KEY"], "Content-Type": "application/json"}
        asked = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data=data, headers=headers)
        with _direct.open(asked, timeout=60) as answer:
            return json.load(answer)

    def close(self) -> None:
        """End everything."""
        for process in self.started.values():
            if process.poll() is None:
                tree.kill_tree(process.pid)
                process.wait(60)

    def _run(self, command: list[str], service: str, timeout: float) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self._words(command), cwd=self._image, env=self._environment(service), capture_output=True, text=True,
            timeout=timeout, check=False,
        )  # fmt: skip

    def _words(self, command: list[str]) -> list[str]:
        words = [str(self.port) if word == "8080" else self._here(word) for word in command]
        return [sys.executable, *words[1:]] if words[0] == "python" else words

    def _environment(self, service: str) -> dict[str, str]:
        told = {name: self._here(value) for name, value in self._services[service]["environment"].items()}
        mine = {"HOME": str(self._folder), "TURNO_MESSAGING__QUEUE_PREFIX": self.queue_prefix}
        mine["TURNO_WEB__PORT"] = str(self.port)
        return {"PATH": "/usr/bin:/bin", "TURNO_LANG": "en", **SHORT, **told, **mine}

    def _here(self, text: str) -> str:
        for there, here in self._replaced.items():
            text = text.replace(there, here)
        return text
