"""What the crash tests look at: who ran when, by the handlers' own lines, and what a late one left in the database."""

from jobs.enqueue import enqueue
from jobs.models import Job, JobAttempt, JobLog
from tests.kit.look import started
from tests.kit.processes import Fleet, eventually

ISOLATIONS = ["async", "thread", "process"]
# A lease that ends soon, and a grace that a slow machine can keep.
QUICK = {
    "TURNO_WORKER__LEASE_DURATION": "2s",
    "TURNO_WORKER__LEASE_RENEWAL_INTERVAL": "400ms",
    "TURNO_RECOVERY__LEASE_GRACE_PERIOD": "2s",
    "TURNO_WORKER__KILL_GRACE": "500ms",
}


def begin(fleet: Fleet, type_: str, **payload: object) -> object:
    """Enqueue a job that beats, with its type as the key, and wait until it does. Returns its id."""
    id_ = enqueue(type_, {"key": type_, **payload}).id
    started(fleet, type_)
    eventually(lambda: JobLog.objects.filter(job_id=id_).exists(), f"{type_} says something")
    return id_


def lines(fleet: Fleet, key: str) -> list[tuple[int, float]]:
    """Execution and instant of every line of a key, in the order in which they were written."""
    found = []
    for line in fleet.probe_log.read_text().splitlines():
        _, whose, execution, _, at = line.split()
        if whose == key:
            found.append((int(execution), float(at)))
    return found


def assert_nothing_beside(fleet: Fleet, key: str) -> None:
    """Each execution wrote its last line before the next one wrote its first."""
    order = [execution for execution, _ in lines(fleet, key)]
    assert order == sorted(order), f"{key}: an execution ran beside its successor"
    assert len(set(order)) > 1, f"{key} has run but once"


def last_line(fleet: Fleet, key: str, execution: int) -> float:
    """When the execution wrote its last line."""
    return max(at for number, at in lines(fleet, key) if number == execution)


def words(id_: object, execution: int) -> int:
    """How many lines of the execution are stored."""
    return JobLog.objects.filter(job_id=id_, execution=execution).count()


def assert_wrote_nothing_late(id_: object, said: int) -> None:
    """The first execution has `said` words in the database and no more, and what its job shows is not its doing."""
    assert words(id_, 1) == said
    assert JobAttempt.objects.get(job_id=id_, ordinal=1).outcome == "WorkerLost"
    now = Job.objects.get(pk=id_)
    assert now.stage in ("", "execution 2")
    assert now.result in (None, {"execution": 2})
