"""A `docker` for tests: keeps its containers in a file, and lets Compose's own program read the Compose file.

Files in its folder make it behave: `no-daemon`, `no-permission`, `no-compose`, `old-compose` (their texts are what it
says), `broken` (a service's name: its container ends at once), `slow` (`up` waits), `volume` (one that there is).
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
CONTAINERS, CALLS, REAL = HERE / "containers.json", HERE / "calls", HERE / "real-compose"


def said(name: str) -> str | None:
    path = HERE / name
    return path.read_text() if path.exists() else None


def refuse(text: str) -> None:
    sys.exit(text)


def tell(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def containers() -> list[dict[str, object]]:
    return list(json.loads(CONTAINERS.read_text())) if CONTAINERS.exists() else []


def config() -> str:
    done = subprocess.run(
        [REAL.read_text(), "config", "--format", "json"], stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        sys.exit(done.returncode)
    return done.stdout


def up() -> None:
    if said("slow") is not None:
        time.sleep(600)
    found = []
    for name, service in json.loads(config())["services"].items():
        for number in range(1, int((service.get("deploy") or {}).get("replicas") or 1) + 1):
            one: dict[str, object] = {"Service": name, "Name": f"x-{name}-{number}", "State": "running", "ExitCode": 0}
            one["Health"] = "healthy"
            if name == "migrate":
                one |= {"State": "exited", "Health": ""}
            if name == said("broken"):
                one |= {"State": "exited", "Health": "", "ExitCode": 1}
            found.append(one)
    CONTAINERS.write_text(json.dumps(found))
    if (broken := said("broken")) is not None:
        refuse(f'service "{broken}" didn\'t complete successfully: exit 1')


def compose(command: str, *rest: str) -> None:
    if command == "version":
        if said("no-compose") is not None:
            refuse("docker: 'compose' is not a docker command.")
        tell(said("old-compose") or "2.40.3")
    elif command == "config":
        tell(config())
    elif command == "up":
        up()
    elif command == "ps":
        tell("\n".join(json.dumps(one) for one in containers()))
    elif command == "logs":
        if rest[-1] == "migrate" and said("broken") is None:
            tell("Operations to perform\nfirst user made: admin")
        else:
            tell(f"last words of {rest[-1]}\n")
    elif command == "stop":
        stopped = [{**one, "State": "exited", "Health": ""} for one in containers()]
        CONTAINERS.write_text(json.dumps(stopped))


def main(arguments: list[str]) -> None:
    with CALLS.open("a") as calls:
        calls.write(" ".join(arguments) + "\n")
    if arguments[0] == "version":
        for name in ("no-daemon", "no-permission"):
            if (text := said(name)) is not None:
                refuse(text)
        tell("28.0.0")
    elif arguments[0] == "volume":
        sys.exit(0 if said("volume") == arguments[-1] else 1)
    elif arguments[0] == "compose":
        rest = arguments[1:]
        if rest[:2] == ["--ansi", "never"]:
            rest = rest[2:]
        compose(*rest)


os.environ.setdefault("HOME", str(HERE))
main(sys.argv[1:])
