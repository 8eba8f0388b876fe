"""The command line of `./iniciar.sh`, in Portuguese and English."""

from collections.abc import Sequence
from dataclasses import dataclass

from turno.launcher.errors import LauncherError
from turno.launcher.say import _

FLAGS = {
    "--parar": "stop", "--stop": "stop",
    "--estado": "status", "--status": "status",
    "--docker": "docker",
    "--cluster": "cluster",
    "--sem-navegador": "no-browser", "--no-browser": "no-browser",
    "--ajuda": "help", "--help": "help", "-h": "help",
}  # fmt: skip
VALUED = {"--porta": "port", "--port": "port"}


@dataclass(frozen=True)
class Options:
    """What was asked for: `command` is start, stop, status or help; `profile` embedded, cluster or docker."""

    command: str = "start"
    port: int | None = None
    browser: bool = True
    profile: str = "embedded"


def parse(arguments: Sequence[str]) -> Options:
    """Read the command line. Raises LauncherError for an option or a value that makes no sense."""
    command, port, browser, profile = "start", None, True, "embedded"
    rest = list(arguments)
    while rest:
        name, sign, value = rest.pop(0).partition("=")
        if name in VALUED:
            port = _port(value if sign else rest.pop(0) if rest else "", name)
        elif sign or name not in FLAGS:
            raise LauncherError(_("{option}: there is no such option; --ajuda lists them.").format(option=name))
        elif FLAGS[name] == "no-browser":
            browser = False
        elif FLAGS[name] in ("docker", "cluster"):
            if profile not in ("embedded", FLAGS[name]):
                raise LauncherError(_("--docker and --cluster: choose one of them."))
            profile = FLAGS[name]
        else:
            command = FLAGS[name]
    return Options(command, port, browser, profile)


def _port(value: str, name: str) -> int:
    if not value.isascii() or not value.isdigit() or not 0 < int(value) < 65536:
        raise LauncherError(_("{option} needs a port from 1 to 65535.").format(option=name))
    return int(value)


def usage() -> str:
    """The help text."""
    return _(
        "./iniciar.sh [options]: installs Turno where needed, starts it and keeps it up until Ctrl-C.\n"
        "\n"
        "  --porta N        web port of this run (otherwise web.port, 8080)\n"
        "  --cluster        with a RabbitMQ and a Redis of its own besides PostgreSQL (their programs must be here)\n"
        "  --docker         everything in containers, by docker-compose.yml; goes on when this command has ended\n"
        "  --sem-navegador  do not open the browser\n"
        "  --estado         say what is running (exit code 3 when nothing is)\n"
        "  --parar          stop what is running here, also from another terminal\n"
        "  --ajuda          this text\n"
        "\n"
        "English names work too: --port, --no-browser, --status, --stop, --help."
    )
