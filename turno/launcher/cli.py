"""`./iniciar.sh` once a Python was found: reads the options, installs, goes on inside the environment.

Everything that goes wrong ends as one sentence and exit code 1.
"""

import os
import signal
import sys
import traceback
from collections.abc import Sequence

from turno.launcher import control, docker, install
from turno.launcher.errors import LauncherError, sentence
from turno.launcher.options import Options, parse, usage
from turno.launcher.paths import Project, venv_python
from turno.launcher.say import Console, _
from turno.launcher.signals import Interrupted, Signals
from turno.launcher.state import lock_of


def main(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    console, project = Console(), Project()
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        return _run(parse(arguments), arguments, project, console)
    except LauncherError as error:
        Console(sys.stderr).failed(str(error))
    except OSError as error:
        Console(sys.stderr).failed(sentence(error, project.root))
    except (Interrupted, KeyboardInterrupt):
        console.line(_("Interrupted."))
        return 130
    except Exception as error:  # noqa: BLE001  a defect of ours: still one sentence, the rest into a file
        log = project.logs / "launcher.log"
        try:
            log.write_text(traceback.format_exc(), encoding="utf-8")
        except OSError:
            traceback.print_exc()
        Console(sys.stderr).failed(
            _("Something unforeseen went wrong: {reason} (details: {log})").format(reason=error, log=log)
        )
    return 1


def _run(options: Options, arguments: Sequence[str], project: Project, console: Console) -> int:
    if options.command == "help":
        print(usage())
        return 0
    if options.command == "status":
        return docker.status(project, console)
    if options.command == "stop":
        return docker.stop(project, console)
    install.check_python()
    project.prepare()
    lock = lock_of(project)
    if not lock.take():
        return control.already_running(project, console)
    signals = Signals()
    signals.install()
    signals.raising = True
    if options.profile == "docker":
        return docker.start(project, options, console, signals)
    if not lock.inherited:
        _install(project, console)
        lock.hand_over()
        os.execv(  # noqa: S606
            venv_python(project.venv), [str(venv_python(project.venv)), "-m", __package__, *arguments]
        )
    from turno.launcher.run import start  # needs what was just installed

    return start(project, options, console, signals)


def _install(project: Project, console: Console) -> None:
    console.line("Turno")
    console.done(f"Python {sys.version.split()[0]} ({sys.executable})")
    log = project.logs / "install.log"
    fresh = install.ensure(project.venv, [project.root / "requirements/base.txt"], log, console)
    console.done(_("Packages installed in .venv") if fresh else _("The packages are up to date"))
