"""The commands about an installation that runs already: `--estado`, `--parar`, and a second start."""

import os
import signal
import time

from turno.launcher.cleanup import end_leftovers, leftovers
from turno.launcher.errors import LauncherError
from turno.launcher.paths import Project
from turno.launcher.probe import ready
from turno.launcher.processes import alive
from turno.launcher.say import Console, _
from turno.launcher.state import State, described, lock_of, state_path

NOT_RUNNING = 3  # exit code of --estado when nothing runs
PATIENCE = 180.0  # seconds at least for an orderly stop before --parar gives up


def already_running(project: Project, console: Console) -> int:
    """Say that another start holds this copy of the project."""
    state = State.read(state_path(project))
    if state.address and state.ready:
        console.done(_("Turno is already running here: {address}").format(address=state.address))
    else:
        console.done(_("Another ./iniciar.sh is starting Turno here right now."))
    console.line("    " + _("./iniciar.sh --estado says what is running, ./iniciar.sh --parar stops it."))
    return 0


def status(project: Project, console: Console) -> int:
    """Say what runs. Exit code 0 when Turno runs, 3 when not."""
    holder = lock_of(project).holder()
    state = State.read(state_path(project))
    if holder is None:
        left = leftovers(project).values()
        console.line(_("Turno is not running here."))
        if left:
            console.line(
                _("A start that was killed left processes ({pids}); the next start or --parar ends them.")
                .format(pids=described(left))
            )  # fmt: skip
        return NOT_RUNNING
    if not state.address:
        console.line(_("Turno is starting here, process {pid}.").format(pid=holder.pid))
        return 0
    is_ready = ready(state.address)
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(state.since))
    console.line(
        (
            _("Turno is running and ready: {address}, since {since}, process {pid}")
            if is_ready
            else _("Turno is running but not ready at the moment: {address}, since {since}, process {pid}")
        ).format(address=state.address, since=since, pid=holder.pid)
    )
    for name, identity in state.processes.items():
        word = _("running") if alive(identity) else _("ended, about to be started again")
        console.line(f"    {name:<12} {identity.pid:>8}  {word}")
    return 0


def stop(project: Project, console: Console) -> int:
    """Stop what runs, and what a killed start left behind. Raises LauncherError when it does not stop."""
    lock = lock_of(project)
    holder = lock.holder()
    if holder is None:
        if leftovers(project):
            console.progress(_("Stopping: running jobs get time to finish"))
        ended = end_leftovers(project)
        console.done(
            _("Ended what a killed start had left ({pids}).").format(pids=described(ended))
            if ended
            else _("Turno is not running here.")
        )
        return 0
    try:
        os.kill(holder.pid, signal.SIGTERM)
    except ProcessLookupError:
        pass
    except PermissionError as error:
        raise LauncherError(
            _("Turno is running here as another user (process {pid}): stop it as that user.").format(pid=holder.pid)
        ) from error
    deadline = time.monotonic() + max(PATIENCE, State.read(state_path(project)).stop_within)
    while lock.holder() is not None:
        if time.monotonic() > deadline:
            raise LauncherError(_("Process {pid} does not stop; its logs are in .turno/logs.").format(pid=holder.pid))
        console.progress(_("Stopping: running jobs get time to finish"))
        time.sleep(0.2)
    console.done(_("Turno has stopped."))
    return 0
