"""`./iniciar.sh --docker`: the Compose file's containers, started, awaited, shown and stopped.

Runs on the standard library: nothing is installed outside of the containers.
"""

import os
import secrets
import time
from collections.abc import Mapping
from typing import Any

from turno.launcher import config, control, envfile, ports, screen
from turno.launcher.compose import Compose, Container
from turno.launcher.config import PASSWORD
from turno.launcher.errors import LauncherError
from turno.launcher.options import Options
from turno.launcher.paths import Project
from turno.launcher.say import Console, _
from turno.launcher.signals import Interrupted, Signals
from turno.launcher.state import lock_of

NAME = "COMPOSE_PROJECT_NAME"
KEY = "TURNO_API__KEY"
SECRETS = {
    **config.SECRETS,
    "POSTGRES_PASSWORD": 24, "REDIS_PASSWORD": 24, "RABBITMQ_PASSWORD": 24,
}  # fmt: skip
# Which service opens which port on this machine, by the variable that chooses it.
PORTS = {
    "POSTGRES_PORT": ("postgres", 5432), "REDIS_PORT": ("redis", 6379),
    "RABBITMQ_PORT": ("rabbitmq", 5672), "RABBITMQ_PANEL_PORT": ("rabbitmq", 15672),
}  # fmt: skip
WEB_PORT, WEB_TARGET, PANEL_TARGET = "TURNO_WEB__PORT", 8080, 15672
PATIENCE = 300.0  # seconds from the start of the containers until all must be well
LOOK = 1.0


def start(project: Project, options: Options, console: Console, signals: Signals) -> int:
    """Build, start, wait, show. Raises LauncherError when it does not come up."""
    began = time.monotonic()
    console.line("Turno")
    environ = {**os.environ, **({WEB_PORT: str(options.port)} if options.port else {})}
    compose = Compose.find(project.root, environ)
    _write_env(project, compose, console)
    running = {one.service for one in compose.containers() if one.runs}
    _choose_ports(project, compose, running, console)
    if (project.root / "turno.toml").exists():
        console.line("    " + _("turno.toml is not read in the containers: put its settings into .env."))
    log, since = project.logs / "docker.log", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    log.write_text("", encoding="utf-8")
    try:
        compose.follow(["build"], log, console, _("Building the image"))
        console.done(_("The image is built"))
        try:
            compose.follow(["up", "--detach"], log, console, _("Starting the containers"))
        except LauncherError as error:
            raise _cause(compose, since, error) from error
        model = compose.config()
        _wait(compose, model, since, console, signals)
    except Interrupted:
        console.line(_("Interrupted. What was started goes on; ./iniciar.sh --parar stops it."))
        return 130
    finally:
        signals.raising = False
    _welcome(compose, model, since, console, time.monotonic() - began)
    if options.browser:
        screen.open_browser(_address(model, WEB_TARGET))
    return 0


def status(project: Project, console: Console) -> int:
    """Say what runs, in containers or without them. Exit code 0 when Turno runs, 3 when not."""
    compose, containers = _here(project)
    if compose is None or not any(one.runs for one in containers):
        return control.status(project, console)
    well = all(one.done for one in containers)
    address = _address(compose.config(), WEB_TARGET)
    console.line(
        (
            _("Turno is running in Docker and ready: {address}")
            if well
            else _("Turno is running in Docker but not ready at the moment: {address}")
        ).format(address=address)
    )
    width = max(len(one.name) for one in containers)
    for one in sorted(containers, key=lambda one: (one.service, one.name)):
        told = f"{one.state} ({one.code})" if one.state == "exited" else one.state
        console.line(f"    {one.name:<{width}}  {told:<12} {one.health}".rstrip())
    return 0


def stop(project: Project, console: Console) -> int:
    """Stop the containers, which keep their data; without any, whatever else runs here. Raises LauncherError."""
    compose, containers = _here(project)
    if compose is None or not any(one.runs for one in containers):
        return control.stop(project, console)
    project.prepare()
    compose.follow(["stop"], project.logs / "docker.log", console, _("Stopping: running jobs get time to finish"))
    console.done(_("Turno has stopped."))
    console.line("    " + _("docker compose down removes its containers; its data stay in their volumes."))
    return 0


def _here(project: Project) -> tuple[Compose | None, list[Container]]:
    """The containers of this copy; None where there never were any, Docker is gone, or a start without it runs."""
    if not envfile.as_written(project.env_file).get(NAME) or lock_of(project).holder():
        return None, []
    try:
        compose = Compose.find(project.root, os.environ)
        return compose, compose.containers()
    except LauncherError:
        return None, []


def _write_env(project: Project, compose: Compose, console: Console) -> None:
    """Put what the Compose file needs into `.env`. Raises LauncherError when old data know another password."""
    named = {
        **envfile.as_written(project.env_file),
        **{name: os.environ[name] for name in SECRETS if os.environ.get(name)},
    }
    values = {name: secrets.token_urlsafe(size) for name, size in SECRETS.items() if not named.get(name)}
    name = named.get(NAME) or os.environ.get(NAME) or f"turno-{project.digest[:8]}"
    if "POSTGRES_PASSWORD" in values and compose.has_volume(f"{name}_postgres"):
        raise LauncherError(
            _("The data in Docker's volume {volume} were made with a password that .env no longer has: put the old .env"
              " back, or remove the data with: docker volume rm {volume} {other}")
            .format(volume=f"{name}_postgres", other=f"{name}_rabbitmq")
        )  # fmt: skip
    if not named.get(NAME):
        values[NAME] = name
    if values:
        envfile.update(project.env_file, values)
        console.done(_("Random secrets written to .env (mode 600)"))
    envfile.protect(project.env_file)


def _choose_ports(project: Project, compose: Compose, running: set[str], console: Console) -> None:
    """Where a port is taken by another program, take another one, unless somebody chose it. Raises LauncherError."""
    named = {**envfile.as_written(project.env_file), **compose.environ}
    chosen = {}
    for variable, (service, default) in PORTS.items():
        if service in running or _is_free(int(named.get(variable) or default)):
            continue
        if named.get(variable):
            raise LauncherError(
                _("{variable}: port {port} is taken by another program.").format(
                    variable=variable, port=named[variable]
                )
            )
        chosen[variable] = str(ports.free_port())
        console.done(
            _("Port {port} is taken by another program: {service} gets {other} ({variable} in .env)").format(
                port=default, service=service, other=chosen[variable], variable=variable
            )
        )
    if chosen:
        envfile.update(project.env_file, chosen)
    port = int(named.get(WEB_PORT) or WEB_TARGET)
    if "web" not in running and not _is_free(port):
        other = ports.next_free(port, "127.0.0.1") or port + 1
        raise LauncherError(
            _("Port {port} is taken by another program: stop that one, or choose another: --porta {other}").format(
                port=port, other=other
            )
        )


def _is_free(port: int) -> bool:
    try:
        return ports.is_free(port)
    except PermissionError:  # below 1024: Docker may, where this user may not
        return True


def _wait(compose: Compose, model: Mapping[str, Any], since: str, console: Console, signals: Signals) -> None:
    """Wait until every container is as it should be. Raises LauncherError."""
    deadline = time.monotonic() + PATIENCE
    wanted = {name: int(service.get("scale") or _replicas(service)) for name, service in model["services"].items()}
    while True:
        well: dict[str, int] = dict.fromkeys(wanted, 0)
        for one in compose.containers():
            well[one.service] = well.get(one.service, 0) + one.done
        missing = [name for name, count in wanted.items() if well[name] < count]
        if not missing:
            return
        if time.monotonic() > deadline:
            words = compose.last_words(missing[0], since)
            raise LauncherError(
                _("Not well within {seconds:.0f} s: {names}. The last words of {name}: {words}").format(
                    seconds=PATIENCE, names=", ".join(missing), name=missing[0], words=words or "?"
                )
            )
        console.progress(_("Waiting for {names}").format(names=", ".join(missing)))
        signals.wait(LOOK)


def _replicas(service: Mapping[str, Any]) -> int:
    replicas = service.get("deploy", {}).get("replicas")
    return 1 if replicas is None else int(replicas)


def _cause(compose: Compose, since: str, error: LauncherError) -> LauncherError:
    """What stands behind a start that failed: the last words of whoever is not well."""
    try:
        ill = [one for one in compose.containers() if one.health == "unhealthy" or one.code]
        for one in sorted(ill, key=lambda one: one.service != "migrate"):
            if words := compose.last_words(one.service, since):
                return LauncherError(
                    _("{name} does not start: {reason} (log: {log})").format(
                        name=one.service, reason=words, log=f"docker compose logs {one.service}"
                    )
                )
    except LauncherError:
        pass
    return error


def _address(model: Mapping[str, Any], target: int) -> str:
    """The address on which this machine reaches a container's port."""
    for service in model["services"].values():
        for port in service.get("ports", ()):
            if port["target"] == target:
                bind = port.get("host_ip", "")
                host = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(bind, bind)  # noqa: S104
                return f"http://{f'[{host}]' if ':' in host else host}:{port['published']}"
    return ""


def _welcome(compose: Compose, model: Mapping[str, Any], since: str, console: Console, seconds: float) -> None:
    told = compose.log("migrate", since).splitlines()
    made = next(
        (line.removeprefix(screen.FIRST_USER).strip() for line in told if line.startswith(screen.FIRST_USER)), ""
    )
    migrating = model["services"]["migrate"]["environment"]
    panel = _("{address}  (user turno, RABBITMQ_PASSWORD in .env)").format(address=_address(model, PANEL_TARGET))
    screen.welcome_docker(
        console,
        screen.Access(_address(model, WEB_TARGET), migrating[KEY], made, migrating[PASSWORD] or ""),
        [("RabbitMQ", panel), (_("Logs"), "docker compose logs -f")],
        _replicas(model["services"]["worker"]),
        seconds,
    )
