"""Docker Compose as the launcher uses it: found and checked, asked, followed while it works."""

import json
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from turno.launcher.errors import LauncherError
from turno.launcher.processes import tied
from turno.launcher.say import Console, _

OLDEST = (2, 24)  # what docker-compose.yml needs
ASKING = 60.0  # seconds for an answer of Docker
RUNNING = ("running", "restarting", "paused")


@dataclass(frozen=True)
class Container:
    """One container of the project: its service, state, health ("" without a check) and exit code."""

    service: str
    name: str
    state: str
    health: str
    code: int

    @property
    def runs(self) -> bool:
        """Whether it is up, however it feels."""
        return self.state in RUNNING

    @property
    def done(self) -> bool:
        """Whether it is as it should be: healthy, or for one without a check, ended well."""
        return self.health == "healthy" if self.health or self.runs else self.state == "exited" and self.code == 0


class Compose:
    """The project's Compose file on this machine's Docker. `environ` is what its variables are looked up in first."""

    def __init__(self, command: Sequence[str], folder: Path, environ: Mapping[str, str]) -> None:
        self.command, self.folder, self.environ = list(command), folder, dict(environ)

    @classmethod
    def find(cls, folder: Path, environ: Mapping[str, str]) -> "Compose":
        """Raises LauncherError with what is missing: Docker, a Compose that is new enough, a daemon, or the right."""
        if not shutil.which("docker"):
            raise LauncherError(
                _("--docker needs Docker, and this machine has no command docker: install Docker Engine with its"
                  " Compose plugin, or start without --docker.")
            )  # fmt: skip
        command = _compose_command()
        asked = _ask(["docker", "version", "--format", "{{.Server.Version}}"])
        if asked.returncode:
            told = asked.stderr.strip() or asked.stdout.strip() or "?"
            if "permission denied" in told.lower():
                raise LauncherError(
                    _("This user may not use Docker: add it to the group docker and sign in again, or start as root.")
                )
            raise LauncherError(
                _("Docker is installed, but its daemon does not answer: start it (Linux: systemctl start docker, else"
                  " Docker Desktop) and try again. It said: {reason}")
                .format(reason=told.splitlines()[-1])
            )  # fmt: skip
        return cls(command, folder, environ)

    def config(self) -> dict[str, Any]:
        """The file as Compose reads it, variables filled in. Raises LauncherError with Compose's own sentence."""
        return dict(json.loads(self._run("config", "--format", "json")))

    def containers(self) -> list[Container]:
        """The project's containers, those that have ended too. Raises LauncherError."""
        told = self._run("ps", "--all", "--format", "json").strip()
        found = json.loads(told) if told.startswith("[") else [json.loads(line) for line in told.splitlines()]
        return [
            Container(one["Service"], one["Name"], one["State"], one.get("Health") or "", int(one.get("ExitCode") or 0))
            for one in found
        ]

    def last_words(self, service: str, since: str = "") -> str:
        """The last line of a service's log that says something, "" where there is none."""
        lines = [line for line in self.log(service, since).splitlines() if line.strip()]
        return lines[-1].strip() if lines else ""

    def log(self, service: str, since: str = "") -> str:
        """The end of a service's log, from an instant on ("" for all of it). Raises LauncherError."""
        limit = ["--since", since] if since else []
        return self._run("logs", "--no-color", "--no-log-prefix", "--tail", "200", *limit, service)

    def has_volume(self, name: str) -> bool:
        """Whether Docker keeps a volume of this name."""
        return _ask(["docker", "volume", "inspect", name]).returncode == 0

    def follow(self, arguments: Sequence[str], log: Path, console: Console, text: str) -> None:
        """Run a command that takes its time, its output into the log. Raises LauncherError, with its last line.

        An interruption is passed on to it and awaited.
        """
        console.progress(text)
        last = ""
        with (
            log.open("a", encoding="utf-8") as record,
            subprocess.Popen(
                [*self.command, "--ansi", "never", *arguments],
                cwd=self.folder,
                env=self.environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
                preexec_fn=tied(signal.SIGINT),  # noqa: PLW1509  (it ends with us, however we end)
            ) as process,
        ):
            try:
                for line in process.stdout or ():
                    record.write(line)
                    last = line.strip() or last
                    console.progress(f"{text}: {last}")
            except BaseException:
                process.send_signal(signal.SIGINT)
                raise
        if process.returncode:
            raise LauncherError(_("Docker Compose failed: {reason} (log: {log})").format(reason=last or "?", log=log))

    def _run(self, *arguments: str) -> str:
        done = _ask([*self.command, *arguments], cwd=self.folder, env=self.environ)
        if done.returncode:
            lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
            raise LauncherError(_("Docker Compose refused: {reason}").format(reason=lines[0] if lines else "?"))
        return done.stdout


def _compose_command() -> list[str]:
    versions = []
    for command in (["docker", "compose"], ["docker-compose"]):
        if not shutil.which(command[0]):
            continue
        told = _ask([*command, "version", "--short"]).stdout
        if found := re.search(r"(\d+)\.(\d+)", told):
            versions.append(told.strip())
            if (int(found[1]), int(found[2])) >= OLDEST:
                return command
    needed = ".".join(map(str, OLDEST))
    if versions:
        raise LauncherError(
            _("Docker Compose {version} is too old: version {needed} or newer is needed.").format(
                version=versions[0], needed=needed
            )
        )
    raise LauncherError(
        _("Docker is here, but its Compose plugin is not: install version {needed} or newer of it (the package"
          " docker-compose-plugin, or docker-compose-v2).")
        .format(needed=needed)
    )  # fmt: skip


def _ask(command: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=ASKING,
            check=False, **options,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        told = _("no answer within {seconds:.0f} s").format(seconds=ASKING)
        return subprocess.CompletedProcess(command, 124, "", told)
    except OSError as error:
        return subprocess.CompletedProcess(command, 126, "", str(error))
