"""Modules that would take down whoever imports them: web process and worker start without them, and say so."""

import os
import signal

import pytest
from django.test import Client

from tests.api.client import KEY
from tests.api.served import serving
from tests.kit.look import wait_state
from tests.kit.processes import PROJECT, eventually
from tests.transitions import rows
from workers import tree

pytestmark = pytest.mark.crash

BROKEN = {
    "bm_ends": ("import os\nos._exit(3)\n", "the import ended the process (exit code 3)"),
    "bm_crashes": ("import ctypes\nctypes.string_at(0)\n", "the import was killed by signal 11 (SIGSEGV)"),
    "bm_endless": ("while True:\n    pass\n", "the import did not end within 2 s"),
    "bm_closes": ("import os\nos.closerange(3, 4096)\n", "the import closed file descriptors that are not its own"),
    "bm_kills": ("import os\nos.killpg(0, 9)\n", "the import was killed by signal 9 (SIGKILL)"),
}
GOOD = "from turno.handlers import job_type\n@job_type('bm.good')\ndef handler(ctx):\n    'Runs.'\n    return 'ran'\n"
ERRORS = {module: error for module, (_source, error) in BROKEN.items()}


def run_good(served):
    status, _headers, job = served.post("/api/jobs", {"type": "bm.good", "payload": {}})
    assert status == 201
    assert wait_state(job["id"], "Succeeded").result == "ran"


def test_a_worker_and_a_web_process_start_without_what_would_end_them_and_name_it(fleet, tmp_path):
    for module, (source, _error) in {**BROKEN, "bm_good": (GOOD, "")}.items():
        (tmp_path / f"{module}.py").write_text(source)
    env = {
        "TURNO_HANDLERS": ",".join([*BROKEN, "bm_good"]),
        "TURNO_PYTHON_PATH": str(tmp_path),
        "TURNO_SAMPLES__ENABLED": "false",
        "TURNO_WORKER__IMPORT_TIMEOUT": "2s",
        "TURNO_LANG": "en",
        "PYTHONPATH": str(PROJECT),
    }
    worker = fleet.start("a", **env)
    with serving(tmp_path, **env) as served:
        worker.wait_ready()
        run_good(served)
        _status, _headers, ready = served.ask("GET", "/health/ready")
        assert (ready["status"], set(ready["broken_modules"])) == ("ready", set(BROKEN))
        _status, _headers, workers = served.ask("GET", "/api/workers")
        (row,) = workers["items"]
        for forkserver in tree.children(row["pid"]):
            os.kill(forkserver, signal.SIGKILL)
        eventually(lambda: worker.events("forkserver.lost"), "the worker has seen it")
        run_good(served)  # by another one, which loads everything anew
    assert {problem["module"]: problem["error"] for problem in row["problems"]} == ERRORS
    for log in (worker.log.read_text(), (tmp_path / "daphne.log").read_text()):
        for module, error in ERRORS.items():
            assert log.count(f"handler module {module} can't be imported: {error}") == 1


@pytest.mark.django_db
def test_the_overview_shows_which_modules_are_broken_and_where():
    rows.execute(
        "INSERT INTO turno.workers (id, name, host, boot_id, pid_namespace, pid, pid_started, version, queues, "
        "problems) VALUES (gen_random_uuid(), 'worker-7', 'host-9', 'b', 'n', 42, '1', '1', '{\"default\": 4}',"
        ' \'[{"module": "billing", "error": "ImportError: <nothing>"}]\')'
    )
    browser = Client(headers={"Accept": "text/html", "Accept-Language": "en"})
    browser.post("/entrar", {"chave": KEY})
    html = browser.get("/painel/").content.decode()
    assert "can't be imported" in html.replace("&#x27;", "'")
    for shown in ("billing", "ImportError: &lt;nothing&gt;", "worker-7"):
        assert shown in html
