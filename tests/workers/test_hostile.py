"""A real worker and handlers that raise, say and return what no handler should: each job ends, the worker works on.

What is said of each isolation here holds for any transport: the handler has nothing to do with it.
"""

import pytest
from django.utils import translation
from django.utils.translation import gettext

import tests.kit.handlers
import tests.kit.hostile
import tests.kit.loud  # noqa: F401
from jobs.conf import overridden
from jobs.enqueue import JobRequest, enqueue, enqueue_many
from jobs.models import DeadLetter, Job, JobLog, Worker
from tests.api.served import serving
from tests.kit.hostile import ZOO
from tests.kit.look import attempts, job, started, wait_state
from tests.kit.loud import memory
from tests.kit.processes import eventually
from tests.transitions import rows

pytestmark = pytest.mark.crash
ISOLATIONS = ("async", "thread", "process")
OURS = ("(its message", "The handler raised")  # sentences of ours, which are in the language of the worker

ODD = ("object", "nan", "bytes", "long")


@pytest.fixture(autouse=True)
def language():
    """The default one, as in a worker."""
    translation.deactivate()


@pytest.fixture
def fleet(fleet):
    fleet.env |= {
        "TURNO_HANDLERS": '["tests.kit.handlers", "tests.kit.hostile", "tests.kit.loud"]',
        "TURNO_RESILIENCE__BREAKER": "false",
    }
    return fleet


def ended(count, seconds=120.0):
    eventually(lambda: Job.objects.filter(finished_at__isnull=False).count() == count, f"{count} have ended", seconds)


def test_whatever_is_raised_in_any_isolation_ends_its_job_and_the_worker_and_its_child_go_on(fleet):
    worker = fleet.start("a", "default:1").wait_ready()  # one slot: who kept it would stop the others
    before = worker.pid
    child = wait_state(enqueue("hostile.where").id, "Succeeded").result["pid"]
    wanted = [(isolation, what) for what in ZOO for isolation in ISOLATIONS]
    made = enqueue_many([JobRequest(f"hostile.{isolation}", {"what": what}) for isolation, what in wanted])
    ended(len(wanted) + 1)
    for (_isolation, what), answer in zip(wanted, made, strict=True):
        _, type_, message = ZOO[what]
        dead = job(answer.id)
        told = (what, dead.type, dead.error_message)
        assert (dead.state, dead.failure_kind, dead.error_type) == ("Failed", "error", type_), told
        if not message.startswith(OURS):
            assert dead.error_message.startswith(message), told
        assert attempts(answer.id) == [(1, "Failed", True)], told
        assert len(fleet.starts(what.replace(" ", "_"))) == len(ISOLATIONS)
    assert DeadLetter.objects.filter(resolved_at=None).count() == len(wanted)
    # Threads of a handler's own that end badly end nothing.
    assert wait_state(enqueue("loud.broken_threads", {"key": "threads"}).id, "Succeeded").result == {"said": 0}
    assert wait_state(enqueue("hostile.where").id, "Succeeded").result["pid"] == child
    assert (worker.pid, len(worker.events("worker.ready"))) == (before, 1)


def test_a_result_that_can_not_be_stored_fails_its_own_job_once_and_no_other(fleet):
    fleet.start("a", "default:30").wait_ready()
    wanted = [(isolation, odd) for isolation in ISOLATIONS for odd in (*ODD, *[""] * 6)]
    made = enqueue_many([JobRequest(f"loud.{where}", {"key": odd or "fine", "odd": odd}) for where, odd in wanted])
    ended(len(wanted))
    for (isolation, odd), answer in zip(wanted, made, strict=True):
        done = job(answer.id)
        if not odd:
            assert (done.state, done.result) == ("Succeeded", {"said": 0})
            continue
        assert (done.state, done.failure_kind, done.error_type) == ("Failed", "permanent", "ResultError"), isolation
        assert attempts(answer.id) == [(1, "Failed", True)]
        assert done.error_message.startswith("result: " if odd == "long" else "result.rows.1: ")
    assert [len(fleet.starts(odd)) for odd in ODD] == [len(ISOLATIONS)] * len(ODD)


# What is written of progress, in the order in which it is written.
WATCHED = """
CREATE TABLE public.progress_writes (id bigserial, job uuid, percent integer, stage text);
CREATE FUNCTION public.progress_written() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
INSERT INTO public.progress_writes (job, percent, stage) VALUES (NEW.id, NEW.progress, NEW.stage); RETURN NULL; END $$;
CREATE TRIGGER progress_written AFTER UPDATE ON turno.jobs FOR EACH ROW
WHEN (NEW.state = 'Processing' AND OLD.state = 'Processing'
  AND (OLD.progress, OLD.stage) IS DISTINCT FROM (NEW.progress, NEW.stage))
EXECUTE FUNCTION public.progress_written()
"""
UNWATCHED = """
DROP TRIGGER IF EXISTS progress_written ON turno.jobs; DROP FUNCTION IF EXISTS public.progress_written;
DROP TABLE IF EXISTS public.progress_writes
"""


@pytest.fixture
def watched(fleet):
    """What was written of a job's progress while it ran: (percent, stage) of each write."""
    rows.execute(UNWATCHED)
    rows.execute(WATCHED)

    def writes(id_):
        found = rows.select("SELECT percent, stage FROM public.progress_writes WHERE job = %s ORDER BY id", id_)
        return [(row["percent"], row["stage"]) for row in found]

    yield writes
    rows.execute(UNWATCHED)


def test_a_hundred_thousand_words_are_a_write_a_second_a_bounded_log_and_nobodys_delay(fleet, watched):
    worker = fleet.start("a", "default:5", TURNO_WORKER__PROGRESS_INTERVAL="1s").wait_ready()
    words = {"key": "loud", "calls": 100_000, "lines": 100_000, "seconds": 4}
    loud = [enqueue(f"loud.{isolation}", words, max_attempts=1).id for isolation in ISOLATIONS]
    started(fleet, "loud", times=len(loud))
    for type_ in ("probe.async", "probe.process"):
        wait_state(enqueue(type_, {"key": type_}).id, "Succeeded", 60)
    for id_ in loud:
        done = wait_state(id_, "Succeeded", 120)
        assert (done.progress, done.stage, done.result) == (100, "step 99999", {"said": 100_000})
        [attempt] = done.attempts.all()
        assert (attempt.outcome, done.lost_count) == ("Succeeded", 0)
        written = watched(id_)
        assert 1 <= len(written) <= attempt.duration + 2
        assert [percent for percent, _ in written] == sorted(percent for percent, _ in written)
        lines = list(JobLog.objects.filter(job_id=id_).order_by("number").values_list("number", "message", "level"))
        assert len(lines) == 10_001
        assert lines[0] == (1, "line 0", "info")
        assert lines[9_999] == (10_000, "line 9999", "info")
        full = gettext("The log of this execution is full; what follows is not kept.")
        assert lines[-1] == (10_001, full, "warning")
    assert Worker.objects.get(name="a").state == "Online"
    assert len(worker.events("worker.ready")) == 1


def test_the_requests_limit_goes_over_the_types_and_the_types_over_the_default(fleet):
    fleet.start("a", "default:13").wait_ready()
    late, fine = [], []
    for isolation in ISOLATIONS:
        with overridden(resilience={"timeout": 0.7, "types": {f"loud.{isolation}": {"timeout": 600}}}):
            probe, loud = f"probe.{isolation}", f"loud.{isolation}"
            late.append((enqueue(probe, {"key": "default", "hold": 600}, max_attempts=1).id, "0.7 s"))
            late.append((enqueue(probe, {"key": "below", "hold": 600}, timeout=0.2, max_attempts=1).id, "0.2 s"))
            fine.append(enqueue(loud, {"key": "above", "calls": 1, "seconds": 1.5}).id)
            fine.append(enqueue(probe, {"key": "both", "hold": 1.5}, timeout=600).id)
    # What never ends to say what its error is, is ended too.
    late.append((enqueue("hostile.endless", {}, timeout=0.5).id, "0.5 s"))
    for id_, limit in late:
        dead = wait_state(id_, "Failed", 60)
        assert (attempts(id_), dead.failure_kind) == ([(1, "TimedOut", True)], "timeout")
        assert limit in dead.error_message
    for id_ in fine:
        wait_state(id_, "Succeeded", 60)
        assert attempts(id_) == [(1, "Succeeded", True)]
    keys = ("default", "below", "above", "both")
    assert [len(fleet.starts(key)) for key in keys] == [len(ISOLATIONS)] * len(keys)
    wait_state(enqueue("hostile.where").id, "Succeeded")


def test_a_hundred_threads_out_of_time_are_a_hundred_timed_out_and_their_slots_are_free(fleet):
    fleet.start("a", "default:50").wait_ready()
    late = [JobRequest("probe.thread", {"key": "late", "hold": 30}, timeout=1, max_attempts=1) for _ in range(100)]
    made = enqueue_many(late)
    ended(len(made))
    for answer in made:
        dead = job(answer.id)
        assert (attempts(answer.id), dead.failure_kind) == ([(1, "TimedOut", True)], "timeout")
        assert "1 s" in dead.error_message
    assert len(fleet.starts("late")) == 100
    for answer in enqueue_many([JobRequest("probe.thread", {"key": "after"}) for _ in range(50)]):
        wait_state(answer.id, "Succeeded")


def fan_out(fleet, count):
    fleet.start("a", "default:20,fan:1").wait_ready()
    id_ = enqueue("loud.fan_out", {"count": count}, queue="fan", max_attempts=1).id
    grown = wait_state(id_, "Succeeded", 600).result["grown"]
    assert grown < 100 * 1024**2
    ended(count + 1, 900)
    starts = fleet.starts()
    assert len(starts) == len({start[1] for start in starts}) == count
    assert not Job.objects.exclude(state="Succeeded").exists()


def test_thousands_of_jobs_out_of_one_handler_cost_it_no_memory_and_run_once_each(fleet):
    fan_out(fleet, 1500)


@pytest.mark.longo
def test_thirty_thousand_too(fleet):
    fan_out(fleet, 30_000)


@pytest.mark.longo
def test_thirty_thousand_in_batches_cost_the_web_process_no_memory(clean_tables, tmp_path):
    with serving(tmp_path, TURNO_HANDLERS='["tests.kit.handlers"]') as served:
        batch = {"jobs": [{"type": "probe.async", "payload": {"key": f"web-{n}"}} for n in range(1000)]}
        assert served.post("/api/jobs/batch", batch)[0] == 201
        before = memory(served.process.pid)
        for _ in range(30):
            assert served.post("/api/jobs/batch", batch)[0] == 201
        assert memory(served.process.pid) - before < 100 * 1024**2
    assert Job.objects.count() == 31_000
