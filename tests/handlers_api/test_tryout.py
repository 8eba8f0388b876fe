"""Handler modules are tried in a throw-away process: whatever an import does there, who asked lives on and is told."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit import processes
from tests.kit.processes import PROJECT, eventually

pytestmark = pytest.mark.crash

LIMIT = 2  # seconds; only what never ends takes so long
GOOD = "from turno.handlers import job_type\n@job_type('{0}.run')\ndef handler(ctx):\n    'Runs.'\n"
ENDS = {
    "tr_ends": ("import os\nprint('on my way out')\nos._exit(3)\n", "the import ended the process (exit code 3)"),
    "tr_ends_well": ("import os\nos._exit(0)\n", "the import ended the process (exit code 0)"),
    "tr_crashes": ("import ctypes\nctypes.string_at(0)\n", "the import was killed by signal 11 (SIGSEGV)"),
    "tr_kills_group": (
        "import os, signal\nos.killpg(0, signal.SIGKILL)\n",
        "the import was killed by signal 9 (SIGKILL)",
    ),
    "tr_endless": ("print('so far')\nwhile True:\n    pass\n", "the import did not end within 2 s"),
    "tr_holds": ("import ctypes\nctypes.PyDLL(None).pause()\n", "the import did not end within 2 s"),
    "tr_closes": ("import os\nos.closerange(3, 4096)\n", "the import closed file descriptors that are not its own"),
    "tr_closes_output": ("import os\nos.close(1)\n", "the import closed file descriptors that are not its own"),
    "tr_forks": ("import os\nos.fork()\n", "the import goes on in a copy of the process that it forked"),
    "tr_exits": ("import sys\nsys.exit('enough')\n", "SystemExit: enough (tr_exits.py, line 2)"),
    "tr_interrupts": ("raise KeyboardInterrupt\n", "KeyboardInterrupt (tr_interrupts.py, line 1)"),
    "tr_asks": ("input('name: ')\n", "EOFError: EOF when reading a line (tr_asks.py, line 1)"),
    "tr_fails": ("1 / 0\n", "ZeroDivisionError: division by zero (tr_fails.py, line 1)"),
    "tr_breaks_output": (
        "import sys\nsys.stdout = sys.stderr = None\nraise OSError('late')\n",
        "OSError: late (tr_breaks_output.py, line 3)",
    ),
}
PASSES = {
    "tr_first": GOOD,
    "tr_prints": "import sys\nfor stream in (sys.stdout, sys.stderr):\n    stream.write('x' * 20_000_000)\n",
    "tr_threads": "import threading, time\nthreading.Thread(target=time.sleep, args=(3600,), name='mine').start()\n",
    "tr_database": "from django.db import connection\nconnection.cursor().execute('SELECT 1')\n",
    "tr_starts": (
        "import os, subprocess\nstarted = subprocess.Popen(['sleep', '3600'])\n"
        "open(os.environ['STARTED'], 'a').write(f'{started.pid} ')\n"
    ),
    "tr_signals": "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n",
    "tr_last": GOOD,
}
# A program takes a second to start, so that what differs by nothing but its error is tried by forks alone.
FORKS_ONLY = {
    "tr_ends_well",
    "tr_holds",
    "tr_closes_output",
    "tr_interrupts",
    "tr_asks",
    "tr_fails",
    "tr_breaks_output",
}
ORDER = ["tr_first", *ENDS, *[module for module in PASSES if module not in ("tr_first", "tr_last")], "tr_last"]


def command(way, *modules):
    return [sys.executable, str(Path(__file__).with_name("trying.py")), way, str(LIMIT), *modules]


def environment(folder):
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("TURNO_", "DJANGO_"))}
    return ours | {
        "DJANGO_SETTINGS_MODULE": "turno.settings",
        "PYTHONPATH": f"{folder}{os.pathsep}{PROJECT}",
        "TURNO_DATABASE__URL": processes.database_url(),
        "TURNO_LANG": "en",
        "STARTED": str(folder / "started"),
        "TMP": str(folder),
    }


def write(folder, sources):
    for name, source in sources.items():
        (folder / f"{name}.py").write_text(source.replace("{0}", name), encoding="utf-8")


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture(scope="module", params=["fork", "program"])
def trial(request, django_db_setup, django_db_blocker, tmp_path_factory):
    """Modules, whole and broken by turns, tried each way: what was found, what the process printed."""
    folder = tmp_path_factory.mktemp("modules")
    write(folder, {name: source for name, (source, _error) in ENDS.items()} | PASSES)
    modules = [module for module in ORDER if request.param == "fork" or module not in FORKS_ONLY]
    with django_db_blocker.unblock():
        ran = subprocess.run(
            command(request.param, *modules), env=environment(folder), capture_output=True, text=True, check=False
        )
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout.splitlines()[1])
    return {**told, "modules": modules, "output": ran.stdout.splitlines(), "log": ran.stderr, "folder": folder}


def test_what_ends_hangs_or_breaks_the_process_is_named_and_the_rest_counts_as_whole(trial):
    errors = {module: problem and problem[0] for module, problem in trial["found"].items()}
    assert errors == {module: ENDS[module][1] if module in ENDS else None for module in trial["modules"]}


def test_what_an_import_printed_last_is_kept_and_where_it_was(trial):
    traces = {module: problem[1] for module, problem in trial["found"].items() if problem}
    assert traces["tr_ends"] == "on my way out"
    for module in {"tr_crashes", "tr_endless", "tr_holds"} & set(traces):
        assert f'{module}.py", line' in traces[module]
    assert traces["tr_endless"].startswith("so far")
    assert "Traceback" in traces["tr_exits"]
    assert "handler module tr_ends: its import printed last:\non my way out" in trial["log"]


def test_who_asked_is_untouched(trial):
    assert trial["same connection"]
    assert trial["descriptors left"] == 0
    assert [line for line in trial["output"] if not line.startswith("{")] == ["printed before", "at exit"]
    assert "x" * 100 not in trial["log"]


def test_what_an_import_started_is_ended(trial):
    (pid,) = (trial["folder"] / "started").read_text().split()
    eventually(lambda: not alive(pid), "the process that the import started is gone")


def test_threads_that_an_import_leaves_are_named_in_the_log(trial):
    assert "handler module tr_threads: its import leaves threads running: mine" in trial["log"]


@pytest.mark.parametrize("way", ["fork", "program"])
def test_a_try_ends_with_who_asked_for_it(way, tmp_path, clean_tables):
    forever = "import ctypes, os, pathlib\npathlib.Path(os.environ['TMP'], 'pid').write_text(str(os.getpid()))\n"
    write(tmp_path, {"tr_forever": forever + "ctypes.PyDLL(None).pause()\n"})  # no thread of it can do anything
    asking = subprocess.Popen(command(way, "tr_forever"), env=environment(tmp_path))
    try:
        at = tmp_path / "pid"
        pid = eventually(lambda: at.exists() and at.read_text(), "the import has begun")
        assert int(pid) != asking.pid
        asking.send_signal(signal.SIGKILL)
    finally:
        asking.kill()
        asking.wait()
    eventually(lambda: not alive(pid), "the process of the try is gone")
