"""`scripts/demo.sh N`: sends N jobs of the four samples to the running installation and follows them to their end."""

import secrets
import sys
import time
from collections import Counter
from collections.abc import Sequence
from itertools import batched
from random import Random
from typing import Any
from urllib.parse import urlencode

from turno.launcher.config import Config
from turno.launcher.errors import LauncherError, sentence
from turno.launcher.paths import Project
from turno.launcher.probe import request
from turno.launcher.say import Console, _, ngettext
from turno.launcher.state import State, lock_of, state_path
from turno.samples import DEMO_TYPES, demo_payload

DEFAULT, MOST = 60, 20_000
BATCH, PAGE = 500, 200
ATTEMPTS = 3  # instead of the default 5: the last pause alone would be two minutes
PATIENCE = 900.0  # seconds without any change before the demonstration gives up
SENDING_PATIENCE = 60.0  # seconds for one batch
ENDED = ("Succeeded", "Failed", "Cancelled")


class Demo:
    """One demonstration; its jobs share a tag."""

    def __init__(self, address: str, key: str, console: Console) -> None:
        self.address, self.key, self.console = address, key, console
        self.tag = f"demo-{secrets.token_hex(4)}"

    def send(self, count: int, rng: Random) -> None:
        """Send the jobs. Raises LauncherError when the installation refuses them, OSError when it is away."""
        kinds = [DEMO_TYPES[number % len(DEMO_TYPES)] for number in range(count)]
        sent = 0
        for group in batched(kinds, BATCH):
            jobs = [
                {
                    "type": kind,
                    "payload": demo_payload(kind, rng),
                    "tags": [self.tag],
                    "origin": "demo",
                    "max_attempts": ATTEMPTS,
                }
                for kind in group
            ]
            self._ask("/api/jobs/batch", {"jobs": jobs}, SENDING_PATIENCE)
            sent += len(group)
            self.console.progress(_("{sent} of {count} jobs sent").format(sent=sent, count=count))
        told = ngettext("{count} job sent to {address}", "{count} jobs sent to {address}", count)
        self.console.done(told.format(count=count, address=self.address))

    def states(self) -> Counter[str]:
        """How many of the jobs are in which state; a Scheduled one that ran before counts as Retry. Raises OSError."""
        found: Counter[str] = Counter()
        query = {"tag": self.tag, "page_size": str(PAGE)}
        while True:
            page = self._ask(f"/api/jobs?{urlencode(query)}")
            for job in page["items"]:
                again = job["state"] == "Scheduled" and job["executions"] > 0
                found["Retry" if again else job["state"]] += 1
            if not page["next_cursor"]:
                return found
            query["cursor"] = page["next_cursor"]

    def follow(self, count: int) -> Counter[str]:
        """Show how the jobs go until all have ended. Raises LauncherError when nothing moves any more."""
        found, moved = Counter[str](), time.monotonic()
        while sum(found[state] for state in ENDED) < count:
            time.sleep(max(0.5, count / 2000))  # a look reads all of them
            before = found
            try:
                found = self.states()
            except OSError:
                self.console.progress(_("Turno does not answer at the moment, asking again"))
                continue
            finally:
                if found != before:
                    moved = time.monotonic()
                elif time.monotonic() - moved > PATIENCE:
                    raise LauncherError(_("Nothing has moved for {seconds:.0f} s.").format(seconds=PATIENCE))
            self.console.progress(self.told(found))
        return found

    @staticmethod
    def told(found: Counter[str]) -> str:
        """Counts in words."""
        words = {
            "Succeeded": _("{count} succeeded"),
            "Processing": _("{count} running"),
            "Enqueued": _("{count} in the queue"),
            "Retry": _("{count} waiting for another attempt"),
            "Scheduled": ngettext("{count} scheduled", "{count} scheduled", found["Scheduled"]),
            "Failed": _("{count} failed"),
            "Cancelled": ngettext("{count} cancelled", "{count} cancelled", found["Cancelled"]),
        }
        return ", ".join(word.format(count=found[state]) for state, word in words.items() if found[state]) or "0"

    def _ask(self, path: str, body: object = None, timeout: float = 20.0) -> Any:
        status, answer = request(self.address, path, key=self.key, body=body, timeout=timeout)
        if status in (502, 503, 504):
            raise ConnectionError(str(status))
        if status >= 400:
            detail = answer.get("detail", answer) if isinstance(answer, dict) else answer
            raise LauncherError(_("Turno refused: {status} {detail}").format(status=status, detail=detail))
        return answer


def main(arguments: Sequence[str]) -> int:
    """Run one demonstration. Exit code 0 when every job has come to its end."""
    console = Console()
    try:
        count = _count(arguments)
        address, key = _target(Project())
        demo, began = Demo(address, key, console), time.monotonic()
        try:
            demo.send(count, Random())  # noqa: S311
        except ConnectionError as error:
            raise LauncherError(
                _("Turno does not answer at {address}: start it with ./iniciar.sh.").format(address=address)
            ) from error
        found = demo.follow(count)
        told = ngettext(
            "{count} job ended in {seconds:.0f} s: {states}",
            "All {count} jobs ended in {seconds:.0f} s: {states}",
            count,
        )
        console.done(told.format(count=count, seconds=time.monotonic() - began, states=demo.told(found)))
        if found["Failed"]:
            console.line("    " + _("(about one in twelve is meant to fail, so that there is something to see)"))
    except LauncherError as error:
        Console(sys.stderr).failed(str(error))
        return 1
    except OSError as error:
        Console(sys.stderr).failed(sentence(error))
        return 1
    except KeyboardInterrupt:
        console.line(_("Stopped watching; the jobs go on."))
        return 130
    return 0


def _count(arguments: Sequence[str]) -> int:
    text = arguments[0] if arguments else str(DEFAULT)
    if len(arguments) > 1 or not text.isascii() or not text.isdigit() or not 1 <= int(text) <= MOST:
        raise LauncherError(_("Usage: scripts/demo.sh [number of jobs, 1 to {most}]").format(most=MOST))
    return int(text)


def _target(project: Project) -> tuple[str, str]:
    config = Config(project)
    running = State.read(state_path(project)).address if lock_of(project).holder() else ""
    return running or config.address, config.key


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
