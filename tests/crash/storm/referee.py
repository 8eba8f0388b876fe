"""Whether a storm broke a promise, by the handlers' own lines beside the tables. `jobs.invariants` says the rest."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise

from jobs.invariants import Promise
from tests.crash.storm.clients import ACCEPTED, DOUBTFUL, REFUSED
from tests.crash.storm.evidence import Evidence, Line
from tests.crash.storm.handlers import AT_ONCE
from tests.crash.storm.people import WHOLE

FINAL = ("Succeeded", "Failed", "Cancelled")
# An execution that never came to its handler ended so, or was cancelled, or ran out of time before it.
UNSTARTED = ("WorkerLost", "Interrupted", "Cancelled", "TimedOut")
WHOLE_RUNS = ("Succeeded", "Snoozed")
SHOWN = 5
LOST, TWICE, TRUTH = Promise


@dataclass(frozen=True)
class Verdict:
    """What became of one rule: `examples` are some of the `count` cases in which it was broken."""

    name: str
    rule: str
    promise: Promise
    count: int
    examples: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether it holds."""
        return self.count == 0


type Rule = Callable[[Evidence], Iterator[str]]
RULES: list[tuple[str, Promise, Rule]] = []


def rule(promise: Promise) -> Callable[[Rule], Rule]:
    """A rule of this promise; its docstring is its name."""

    def noted(check: Rule) -> Rule:
        RULES.append((str(check.__doc__).rstrip("."), promise, check))
        return check

    return noted


def verdicts(evidence: Evidence) -> list[Verdict]:
    """Every rule's."""
    found = []
    for text, promise, check in RULES:
        wrong = list(check(evidence))
        found.append(Verdict(check.__name__, text, promise, len(wrong), tuple(wrong[:SHOWN])))
    return found


@rule(LOST)
def accepted(evidence: Evidence) -> Iterator[str]:
    """Each accepted order has its job, and only one."""
    found = Counter(job.order for job in evidence.jobs.values())
    for name, known in evidence.orders.items():
        count = found[name]
        if (known == ACCEPTED and count != 1) or (known == DOUBTFUL and count > 1):
            yield f"order {name} is {known} and has {count} jobs"


@rule(LOST)
def ended(evidence: Evidence) -> Iterator[str]:
    """Each job is final."""
    for job in evidence.jobs.values():
        if job.state not in FINAL:
            yield f"{job.type} {job.id} is {job.state}"


@rule(LOST)
def fired(evidence: Evidence) -> Iterator[str]:
    """Each fired instant has one job, and none is left out where none may be."""
    instants = Counter((job.schedule, job.fired_for) for job in evidence.jobs.values() if job.schedule)
    for (name, instant), count in instants.items():
        if count > 1:
            yield f"{name} was fired {count} times for {instant}"
    # What a person triggered has an instant of its own, which is no whole second.
    whole = sorted(at for name, at in instants if name == WHOLE and at is not None and not at.microsecond)
    for one, other in pairwise(whole):
        if other - one != timedelta(seconds=1):
            yield f"{WHOLE} was not fired between {one} and {other}"


@rule(TWICE)
def started_once(evidence: Evidence) -> Iterator[str]:
    """Each start line names one execution, and none is there twice."""
    for (job, execution), run in evidence.runs.items():
        if run.words["start"] != 1 or run.words["end"] > 1 or evidence.lines[run.first].word != "start":
            yield f"execution {execution} of {job} wrote {dict(run.words)}"


@rule(TWICE)
def one_process(evidence: Evidence) -> Iterator[str]:
    """Each execution is of one process."""
    pids = defaultdict(set)
    for line in evidence.lines:
        pids[line.job, line.execution].add(line.pid)
    for (job, execution), several in pids.items():
        if len(several) > 1:
            yield f"execution {execution} of {job} ran in the processes {sorted(several)}"


@rule(TWICE)
def alone(evidence: Evidence) -> Iterator[str]:
    """No two executions of a job overlap."""
    last: dict[str, int] = {}
    late: dict[tuple[str, int], Line] = {}
    for line in evidence.lines:
        if line.execution < last.get(line.job, 0):
            late[line.job, line.execution] = line
        last[line.job] = max(line.execution, last.get(line.job, 0))
    for (job, execution), line in late.items():
        yield f"execution {execution} of {job}, in process {line.pid}, wrote at {line.at} beside execution {last[job]}"


@rule(TWICE)
def limits(evidence: Evidence) -> Iterator[str]:
    """No more of a key, or of a type with a limit, run at once than may."""
    edges = []  # line, whether one begins there, key, limit, who
    for (id_, execution), run in evidence.runs.items():
        job = evidence.jobs.get(id_)
        if job is None:
            continue
        key, limit = (job.key, job.limit) if job.key else (job.type, AT_ONCE)
        if limit is not None and (job.key or job.type == "storm.limited"):
            who = f"execution {execution} of {id_}"
            edges += [(run.first, True, key, limit, who), (run.last, False, key, limit, who)]
    running: dict[str | None, set[str]] = defaultdict(set)
    for number, begins, key, limit, who in sorted(edges, key=lambda edge: (edge[0], not edge[1])):
        if not begins:
            running[key].discard(who)
            continue
        running[key].add(who)
        if len(running[key]) > limit:
            yield f"{key} at line {number}: {', '.join(sorted(running[key]))}"


@rule(TWICE)
def at_most_once(evidence: Evidence) -> Iterator[str]:
    """What may run at most once was repeated by nothing but a person."""
    starts = Counter(job for job, _ in evidence.runs)
    for job in evidence.jobs.values():
        if job.at_most_once and starts[job.id] > 1 + job.requeues:
            yield f"{job.type} {job.id} started {starts[job.id]} times and was requeued {job.requeues} times"


@rule(TWICE)
def refused(evidence: Evidence) -> Iterator[str]:
    """What was rolled back or never committed has no job."""
    found = Counter(job.order for job in evidence.jobs.values())
    for name, known in evidence.orders.items():
        if known == REFUSED and found[name]:
            yield f"order {name} has {found[name]} jobs"


@rule(TWICE)
def in_order(evidence: Evidence) -> Iterator[str]:
    """A child starts when its parents have ended."""
    spans: dict[str, tuple[int, int]] = {}
    for (id_, _), run in evidence.runs.items():
        first, last = spans.get(id_, (run.first, run.last))
        spans[id_] = (min(first, run.first), max(last, run.last))
    for child, parents in evidence.parents.items():
        for parent in parents:
            if child not in spans or parent not in spans or evidence.jobs[parent].requeues:
                continue
            if spans[parent][1] > spans[child][0]:
                yield f"{child} started before its parent {parent} had ended"


@rule(TRUTH)
def known_to_the_tables(evidence: Evidence) -> Iterator[str]:
    """Each line is of an execution that the tables know."""
    for job, execution in evidence.runs:
        if (job, execution) not in evidence.attempts:
            yield f"execution {execution} of {job} ran, and has no row"


@rule(TRUTH)
def explained(evidence: Evidence) -> Iterator[str]:
    """An execution without a start line was lost, interrupted or stopped before it."""
    for (job, execution), outcome in evidence.attempts.items():
        if (job, execution) not in evidence.runs and outcome not in UNSTARTED:
            yield f"execution {execution} of {job} never started and is {outcome}"


@rule(TRUTH)
def came_to_its_end(evidence: Evidence) -> Iterator[str]:
    """What succeeded wrote its last line."""
    for (job, execution), outcome in evidence.attempts.items():
        run = evidence.runs.get((job, execution))
        if outcome in WHOLE_RUNS and run is not None and not run.words["end"]:
            yield f"execution {execution} of {job} is {outcome} and did not come to its end"


@rule(TRUTH)
def own_result(evidence: Evidence) -> Iterator[str]:
    """A success shows the result of its last execution, and that execution succeeded."""
    for job in evidence.jobs.values():
        if job.state != "Succeeded":
            continue
        outcome = evidence.attempts.get((job.id, job.executions))
        if outcome != "Succeeded" or job.result != job.executions:
            yield f"{job.type} {job.id}: execution {job.executions} is {outcome}, its result is of {job.result}"


@rule(TRUTH)
def complete(evidence: Evidence) -> Iterator[str]:
    """Each execution of a job has its row."""
    rows = Counter(job for job, _ in evidence.attempts)
    for job in evidence.jobs.values():
        if job.state in FINAL and rows[job.id] != job.executions:
            yield f"{job.type} {job.id} has {job.executions} executions and {rows[job.id]} rows"


@rule(TRUTH)
def nothing_left(evidence: Evidence) -> Iterator[str]:
    """No message waits when no job does."""
    for queue, count in evidence.left_over.items():
        if count:
            yield f"{count} in {queue}"


@rule(TRUTH)
def orderly(evidence: Evidence) -> Iterator[str]:
    """Workers that are asked to end do so in order."""
    yield from evidence.ends


def broken(found: Iterable[Verdict]) -> list[Verdict]:
    """Those that do not hold."""
    return [verdict for verdict in found if not verdict.ok]
