"""One run of the installation: start everything in order, keep it up, stop it in order."""

import os
import subprocess
import sys
import time
from pathlib import Path

from turno.launcher import database, patience, ports, screen
from turno.launcher.children import Child
from turno.launcher.cleanup import end_leftovers, leftovers
from turno.launcher.config import Config
from turno.launcher.errors import LauncherError
from turno.launcher.keeper import Keeper
from turno.launcher.options import Options
from turno.launcher.paths import Project
from turno.launcher.say import Console, _
from turno.launcher.servers import Servers
from turno.launcher.signals import Interrupted, Signals
from turno.launcher.state import State, described, state_path

WORKERS = 3
LINES_FOR_PEOPLE = 8


def start(project: Project, options: Options, console: Console, signals: Signals) -> int:
    """Start, serve until somebody asks to stop, stop. Raises LauncherError when it does not come up."""
    began = time.monotonic()
    config = Config(project, port=options.port)
    if leftovers(project):
        console.progress(_("Stopping: running jobs get time to finish"))
    if left := end_leftovers(project):
        console.done(_("Ended what a killed start had left ({pids}).").format(pids=described(left)))
    check_port(config)
    if config.write_secrets():
        console.done(_("Random secrets written to .env (mode 600)"))
    cluster = options.profile == "cluster"
    servers = Servers.wanted(project, config) if cluster else Servers(None, None)
    state = State(address=config.address, stop_within=patience.everything(config, servers=cluster))
    keeper = Keeper(console, signals, state, state_path(project))
    try:
        if cluster:
            servers.begin(config, keeper, console)
        elif config.forget_cluster():
            console.done(_("The work goes through PostgreSQL again; --cluster brings RabbitMQ and Redis back"))
        first_user = prepare_database(project, config, keeper, console, signals)
        servers.wait(keeper, console)
        keeper.children = children(project, config)
        keeper.start_all()
        keeper.wait_until_ready(config.address, config.key)
        screen.welcome(console, config, WORKERS, time.monotonic() - began, first_user)
        if options.browser:
            screen.open_browser(config.address)
        keeper.serve()
    except Interrupted:
        pass
    finally:
        signals.raising = False
        keeper.stop_all()
    console.done(_("Turno has stopped."))
    return 0


def check_port(config: Config) -> None:
    """Raises LauncherError when the web port is taken, or the address is not this machine's."""
    try:
        if ports.is_free(config.port, config.bind):
            return
    except PermissionError as error:
        raise LauncherError(
            _("This user may not listen on port {port}: choose one above 1023 with --porta.").format(port=config.port)
        ) from error
    except OSError as error:
        raise LauncherError(
            _("web.bind: {address} is not an address of this machine.").format(address=config.bind)
        ) from error
    other = ports.next_free(config.port, config.bind)
    raise LauncherError(
        _("Port {port} is taken by another program: stop that one, or choose another: --porta {other}").format(
            port=config.port, other=other or config.port + 1
        )
    )


def prepare_database(project: Project, config: Config, keeper: Keeper, console: Console, signals: Signals) -> str:
    """Start or reach the database and bring its tables up to date. Raises LauncherError.

    Answers the name of the user that was made, "" where there were users already.
    """
    if url := config.own_database:
        database.wait_for(url, console, signals)
    else:
        keeper.postgres = database.private_server(project, config, console)
        keeper.note()
    console.progress(_("Updating the tables"))
    log = project.logs / "migrate.log"
    with log.open("wb") as output:
        command = [sys.executable, "manage.py", "migrate", "--no-input", "--first-user"]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            cwd=project.root, env=environment(config), check=False,
        )  # fmt: skip
    told = log.read_text(errors="replace")
    if done.returncode:
        lines = [line.strip() for line in told.splitlines() if line.strip()] or [str(done.returncode)]
        # A traceback says it in its last line; what was meant for people is short and all of it matters.
        reason = (
            lines[-1] if "Traceback" in told or len(lines) > LINES_FOR_PEOPLE else "; ".join(lines).replace(":;", ":")
        )
        raise LauncherError(_("The tables could not be updated: {reason} (log: {log})").format(reason=reason, log=log))
    console.done(_("The tables are up to date"))
    made = (line.removeprefix(screen.FIRST_USER) for line in told.splitlines() if line.startswith(screen.FIRST_USER))
    return next(made, "").strip()


def environment(config: Config) -> dict[str, str]:
    """What the children see: this environment, and what this run decided."""
    chosen = {"TURNO_WEB__PORT": str(config.port), "PYTHONUNBUFFERED": "1"}
    if not config.own_database:
        chosen["TURNO_DATABASE__URL"] = config.get("database", "url")
    for name in (config.TRANSPORT, config.BROKER, config.REDIS):
        if name in config.file and name not in config.environ:
            chosen[name] = config.file[name]
    return {**os.environ, **chosen}


def children(project: Project, config: Config) -> list[Child]:
    """The processes of an installation, in the order in which they start and stop."""
    env = environment(config)
    python: list[str | Path] = [sys.executable]
    grace = patience.worker(config)

    def child(name: str, argv: list[str | Path], seconds: float) -> Child:
        return Child(name, argv, project.logs / f"{name}.log", env, project.root, seconds)

    daphne = [*python, "-m", "daphne", "-b", config.bind, "-p", str(config.port), "turno.asgi:application"]
    workers = [
        child(name, [*python, "manage.py", "runworker", "--name", name], grace)
        for name in (f"worker-{number}" for number in range(1, WORKERS + 1))
    ]
    return [child("web", daphne, patience.WEB), *workers]
