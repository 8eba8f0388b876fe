"""The modules that the configuration names: loaded once, a broken one on its own."""

import sys
import threading

import pytest
from django.db import connection
from django.utils import translation

from jobs import tryout
from jobs.conf import overridden
from jobs.errors import UnknownType
from jobs.loading import SAMPLES as SAMPLE_MODULE
from jobs.registry import Catalogue, catalogue
from turno.handlers import job_type

GOOD = "from turno.handlers import job_type\n@job_type('{0}.run')\ndef handler(ctx):\n    'Runs.'\n"
SAMPLES = ["file.process", "integration.sync", "notification.send", "report.generate"]


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """Writes handler modules; they are forgotten after the test."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)

    def write(**sources):
        for name, source in sources.items():
            (tmp_path / f"{name}.py").write_text(source.format(name), encoding="utf-8")
        return sorted(sources)

    yield write
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_the_samples_are_there_by_default():
    assert catalogue.load() == []
    assert set(SAMPLES) <= set(catalogue.names())


def test_the_samples_can_be_switched_off():
    with overridden(samples={"enabled": False}):
        fresh = Catalogue()
        assert (fresh.load(), fresh.names()) == ([], [])


def test_a_configured_module_is_loaded_when_a_name_is_asked_for(modules):
    with overridden(handlers=modules(lt_good=GOOD)):
        assert catalogue.get("lt_good.run").description == "Runs."


BROKEN = {
    "lt_syntax": ("def (:\n", "SyntaxError: invalid syntax (lt_syntax.py, line 1)"),
    "lt_exit": ("import sys\nsys.exit(3)\n", "SystemExit: 3 (lt_exit.py, line 2)"),
    "lt_interrupt": ("raise KeyboardInterrupt\n", "KeyboardInterrupt (lt_interrupt.py, line 1)"),
    "lt_missing": ("import no_such\n", "ModuleNotFoundError: No module named 'no_such' (lt_missing.py, line 1)"),
    "lt_fails": ("def f():\n    return 1 / 0\nf()\n", "ZeroDivisionError: division by zero (lt_fails.py, line 2)"),
    "lt_wrong": (
        "from turno.handlers import job_type\njob_type('X')(print)\n",
        "RegistrationError: builtins.print: name: expected",
    ),
    "lt_nul": ("raise ValueError('a\\x00b\\nc')\n", "ValueError: ab c (lt_nul.py, line 1)"),
}


def test_each_broken_module_is_named_with_its_error_and_stops_nothing_else(modules, caplog):
    sources = {name: source for name, (source, _) in BROKEN.items()}
    names = ["lt_absent", *modules(**sources), *modules(lt_last=GOOD)]
    with overridden(handlers=names):
        problems = {problem.module: problem for problem in catalogue.load()}
        assert catalogue.get("lt_last.run") is not None
    assert set(problems) == {*BROKEN, "lt_absent"}
    for name, (_, error) in BROKEN.items():
        assert problems[name].error.startswith(error)
        assert "Traceback" in problems[name].trace or name == "lt_syntax"
        assert f"handler module {name} can't be imported" in caplog.text
    assert problems["lt_absent"].error == "ModuleNotFoundError: No module named 'lt_absent'"
    assert set(SAMPLES) <= set(catalogue.names())


def test_what_a_module_registered_before_it_failed_is_withdrawn(modules):
    inner = GOOD + "import lt_inner\n"
    with overridden(handlers=modules(lt_half=inner + "raise OSError('late')\n", lt_inner=GOOD)):
        assert [problem.error for problem in catalogue.load()] == ["OSError: late (lt_half.py, line 6)"]
        assert catalogue.get("lt_half.run") is None
        assert catalogue.get("lt_inner.run") is not None, "the module that it imported is whole"


def test_loading_again_imports_nothing_again_and_says_the_same(modules):
    counting = "import lt_counter\nlt_counter.count.append(1)\nraise OSError('always')\n"
    with overridden(handlers=modules(lt_counter="count = []\n", lt_counted=counting)):
        first, second = catalogue.load(), catalogue.load()
        assert first == second
        assert [problem.module for problem in first] == ["lt_counted"]
        assert sys.modules["lt_counter"].count == [1]


FATAL = "import os\nos._exit(3)\n"


@pytest.mark.crash
def test_a_guarded_load_imports_only_what_came_through_a_throw_away_process(modules, caplog):
    with overridden(handlers=modules(lt_fatal=FATAL, lt_whole=GOOD)):
        (problem,) = catalogue.load(guarded=True)
        assert (problem.module, problem.error) == ("lt_fatal", "the import ended the process (exit code 3)")
        assert catalogue.problems() == [problem]
        assert catalogue.get("lt_whole.run") is not None
    assert "lt_fatal" not in sys.modules
    assert "handler module lt_fatal can't be imported: the import ended the process (exit code 3)" in caplog.text


@pytest.mark.crash
def test_what_was_found_broken_is_never_imported_by_a_later_load(modules):
    with overridden(handlers=modules(lt_fatal=FATAL)):
        first = catalogue.load(guarded=True)
        assert catalogue.load() == catalogue.load(guarded=True) == first
        assert catalogue.get("no.such.type") is None


def test_our_own_samples_and_what_is_imported_already_need_no_process(modules, monkeypatch):
    names = modules(lt_known=GOOD)
    import lt_known  # noqa: F401

    monkeypatch.setattr(tryout, "Trial", None)  # whoever starts one fails
    with overridden(handlers=names):
        fresh = Catalogue()
        fresh.load(guarded=True)
        assert {SAMPLE_MODULE, "lt_known"} <= set(fresh._outcomes)


def test_where_no_process_can_be_started_the_log_says_so_and_the_modules_are_imported(modules, monkeypatch, caplog):
    def no_process(*_):
        raise OSError("no more processes")

    monkeypatch.setattr(tryout, "Trial", no_process)
    with overridden(handlers=modules(lt_trusted=GOOD)):
        assert catalogue.load(guarded=True) == []
        assert catalogue.get("lt_trusted.run") is not None
    assert "can't be tried in a process of their own: no more processes" in caplog.text


@pytest.mark.crash
def test_a_long_import_is_named_in_the_log_while_it_is_waited_for(modules, monkeypatch, caplog):
    monkeypatch.setattr(tryout, "SAY_AFTER", 0.1)
    endless = "import time\nwhile True:\n    time.sleep(1)\n"
    with overridden(handlers=modules(lt_long=endless), worker={"import_timeout": 1}):
        (problem,) = catalogue.load(guarded=True)
    assert problem.error == "the import did not end within 1 s"
    assert 'lt_long.py", line 3' in problem.trace
    assert "handler module lt_long: its import has taken 0 s; it is given up after 1 s" in caplog.text


@pytest.mark.django_db(transaction=True)
def test_a_guarded_load_leaves_no_database_connection_behind(modules):
    connection.close()
    with overridden(handlers=modules(lt_query="from django.db import connection\nconnection.ensure_connection()\n")):
        assert catalogue.load(guarded=True) == []
    assert connection.connection is None


def test_a_module_that_was_named_later_is_loaded_then(modules):
    names = modules(lt_later=GOOD)
    assert catalogue.get("lt_later.run") is None
    with overridden(handlers=names):
        assert catalogue.get("lt_later.run") is not None
    assert catalogue.load() == []


def test_a_handler_module_may_ask_the_catalogue_while_it_is_loaded(modules):
    asking = "from jobs.registry import catalogue\nseen = catalogue.get('no.such'), catalogue.load()\n" + GOOD
    with overridden(handlers=modules(lt_asking=asking)):
        assert catalogue.load() == []
        assert sys.modules["lt_asking"].seen == (None, [])
        assert catalogue.get("lt_asking.run") is not None


def test_threads_that_load_at_once_import_once_and_all_see_the_types(modules):
    slow = "import lt_gate\nlt_gate.count.append(1)\nlt_gate.gate.wait(60)\n" + GOOD
    gate = "import threading\ncount = []\ngate = threading.Event()\n"
    found = []
    with overridden(handlers=modules(lt_gate=gate, lt_slow=slow)):
        threads = [threading.Thread(target=lambda: found.append(catalogue.get("lt_slow.run"))) for _ in range(4)]
        for thread in threads:
            thread.start()
        import lt_gate

        lt_gate.gate.set()
        for thread in threads:
            thread.join()
        assert lt_gate.count == [1]
    assert len({id(job) for job in found}) == 1
    assert found[0].name == "lt_slow.run"


def test_a_thread_that_imports_a_handler_module_by_itself_never_waits_for_another_load(modules):
    held = "import threading\nentered, go = threading.Event(), threading.Event()\n"
    slow = "import lt_held\nlt_held.entered.set()\nlt_held.go.wait(60)\n"
    names = modules(lt_held=held, lt_waits=slow, lt_mine=GOOD)
    with overridden(handlers=["lt_waits"]):
        loader = threading.Thread(target=catalogue.load)
        loader.start()
        import lt_held

        lt_held.entered.wait(60)
        import lt_mine  # registers while the loader is still inside lt_waits

        assert catalogue.get("lt_mine.run").target is lt_mine.handler
        lt_held.go.set()
        loader.join()
    assert "lt_mine" in names


def test_the_nearest_names_come_with_an_unknown_one():
    @job_type("boletos.gerar")
    def handler(ctx): ...

    assert catalogue.nearest("boletos.gera") == ["boletos.gerar"]
    assert catalogue.nearest("BOLETOS.GERAR") == ["boletos.gerar"]
    assert catalogue.nearest("x" * 100_000) == []
    with translation.override("en"), pytest.raises(UnknownType) as refusal:
        catalogue.require("boleto.gerar")
    assert refusal.value.extra["nearest"] == ["boletos.gerar"]
    text = "There is no such job type; did you mean boletos.gerar?"
    assert [str(message) for message in refusal.value.errors["type"]] == [text]


def test_an_unknown_name_that_resembles_nothing_is_just_unknown():
    with translation.override("en"):
        with pytest.raises(UnknownType) as refusal:
            catalogue.require("qqqqqqq")
        assert str(refusal.value.detail) == "There is no such job type."


def test_a_description_is_read_in_the_active_language(monkeypatch):
    @job_type("described.one")
    def handler(ctx):
        """Says hello."""

    monkeypatch.setattr("jobs.jobtypes.gettext", lambda text: f"{translation.get_language()}:{text}")
    with translation.override("pt-br"):
        assert catalogue.get("described.one").description == "pt-br:Says hello."
