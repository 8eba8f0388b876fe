"""One storm from its plan to its report. Django is set up, for the storm's own database."""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from django.db import connection

from jobs import invariants
from jobs.conf import conf
from tests.crash.storm import blows_broker, blows_servers, blows_workers, people
from tests.crash.storm.blows_broker import left_over
from tests.crash.storm.clients import Client, Ledger
from tests.crash.storm.evidence import Evidence, gathered
from tests.crash.storm.plan import Plan
from tests.crash.storm.referee import Verdict, verdicts
from tests.crash.storm.report import Report, machine
from tests.crash.storm.servers import Servers
from tests.crash.storm.weather import Weather
from tests.kit.processes import Fleet, eventually

CLIENTS = 3
READY = 240.0  # seconds for a first worker
# Nothing has moved for so long: nothing will. A message that the broker lost twice is looked for ten minutes later.
STILL = {"embedded": 150.0, "cluster": 780.0}
LONGEST = 900.0  # seconds after which whatever still moves goes round in circles
LATE = 30.0  # seconds for a message that is of nobody to be dropped
REST = """
SELECT (SELECT count(*) FROM turno.jobs WHERE state NOT IN ('Succeeded', 'Failed', 'Cancelled')),
    (SELECT count(*) FROM turno.outbox_messages), (SELECT COALESCE(max(id), 0) FROM turno.job_state_changes)
"""


def storm(plan: Plan, servers: Servers, tell: Callable[[str], None]) -> Report:
    """Let it happen, and judge what is left."""
    fleet = Fleet(servers.folder)
    weather = Weather(servers, fleet, blows_workers.BLOWS | blows_servers.BLOWS, blows_broker.BLOWS)
    ledger = Ledger()
    try:
        people.begin()
        eventually(lambda: weather.standing(0), "a worker is ready", READY)
        began, at = time.monotonic(), datetime.now(UTC)
        url = servers.postgres.url
        clients = [Client(plan.errands[n::CLIENTS], ledger, f"client-{n}", url, began) for n in range(CLIENTS)]
        person = people.Person(plan.deeds, began)
        for thread in (*clients, person):
            thread.start()
        tell(f"{len(plan.blows)} blows at three workers and their servers, {plan.seconds:g} s")
        weather.run(plan.blows, began, plan.seconds)
        calm = time.monotonic()
        for thread in (*clients, person):
            thread.over.set()
            thread.join(STILL["embedded"])
            assert not thread.is_alive(), f"{thread.name} waits for the database"
            if thread.failed is not None:
                raise thread.failed
        connection.close()
        people.end()
        tell("it is over; waiting until every job has ended")
        rest(weather, STILL[plan.profile], tell)
        calm = time.monotonic() - calm
        left = left_over(weather, LATE) if servers.cluster is not None else {}
        tables = by_the_tables()  # while somebody leads: some of it holds soon, and not at every instant
        ends = weather.ended_in_order()
        evidence = gathered(fleet.probe_log.read_text().splitlines(), ledger.known)
        evidence.left_over, evidence.ends = left, ends
        found = verdicts(evidence) + tables
        return told(plan, at=at, calm=calm, evidence=evidence, found=found, weather=weather, deeds=person.done)
    finally:
        weather.close()
        connection.close()


def rest(weather: Weather, still: float, tell: Callable[[str], None]) -> None:
    """Returns when every job has ended and the outbox is empty, or when nothing moves any more."""
    seen: tuple[object, ...] = ()
    began = moved = said = time.monotonic()
    while True:
        [now] = people.rows(REST)
        if now[:2] == (0, 0):
            return
        if now != seen:
            seen, moved = now, time.monotonic()
        if time.monotonic() - said > 10:
            said = time.monotonic()
            tell(f"{now[0]} jobs have not ended, {now[1]} messages wait in the outbox")
        if time.monotonic() - moved > still or time.monotonic() - began > LONGEST:
            tell(f"given up: {now[0]} jobs have not ended")
            return
        weather.keep_up()
        time.sleep(0.2)


def by_the_tables() -> list[Verdict]:
    """What the tables say alone: every invariant of the product."""
    found = {finding.name: finding for finding in invariants.check(whole=True)}
    broker = conf().messaging.broker
    return [
        Verdict(one.name, one.says, one.promise, found[one.name].count, found[one.name].examples)
        if one.name in found
        else Verdict(one.name, one.says, one.promise, 0, ())
        for one in invariants.INVARIANTS
        if broker or not one.broker
    ]


def told(
    plan: Plan,
    *,
    at: datetime,
    calm: float,
    evidence: Evidence,
    found: list[Verdict],
    weather: Weather,
    deeds: Mapping[str, int],
) -> Report:
    """All of it, counted."""
    kinds: dict[str, Counter[str]] = {}
    for errand in plan.errands:
        for order in errand.orders:
            kinds.setdefault(errand.kind, Counter())[evidence.orders.get(order.name, "never asked")] += 1
    ends: dict[str, Counter[str]] = {}
    for job in evidence.jobs.values():
        ends.setdefault(job.type, Counter())[job.state] += 1
    return Report(
        profile=plan.profile,
        seed=plan.seed,
        seconds=plan.seconds,
        a_second=plan.a_second,
        at=at,
        calm=calm,
        orders=kinds,
        ends=ends,
        executions=Counter(evidence.attempts.values()),
        struck=weather.struck,
        missed=weather.missed,
        deeds=deeds,
        verdicts=found,
        machine=machine(f"PostgreSQL {weather.servers.postgres.version}"),
    )
