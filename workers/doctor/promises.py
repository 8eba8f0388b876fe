"""Do the promises hold? Looked at now, and how long ago the leader has looked."""

from collections.abc import Iterator

from django.db import Error
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from jobs import invariants, queries
from jobs.conf import conf
from jobs.invariants import INVARIANTS, Checked, Finding, Promise
from jobs.promises import OLD
from jobs.text import first_line
from jobs.wording import span
from workers.doctor.base import Level, Line, listed


def promises(margin: float | None) -> Iterator[Line]:
    """Each promise with what breaks it."""
    try:
        yield from _now(margin)
        yield from _last()
    except Error as error:
        says = _("The database broke off: %(error)s.") % {"error": first_line(error)}
        yield Line(Level.BROKEN, "promises", says, _("Look at the database, and check again."))


def _now(margin: float | None) -> Iterator[Line]:
    checked = invariants.examine(margin=margin)
    for promise in Promise:
        found = [finding for finding in checked.findings if finding.promise is promise]
        if found:
            yield from (_broken(finding) for finding in found)
            continue
        asked = _answered(promise, checked)
        holds = ngettext("It holds (%(n)d statement).", "It holds (%(n)d statements).", asked) % {"n": asked}
        yield Line(Level.OK if asked else Level.ATTENTION, promise, f"{promise.says} {holds}")
    if not checked.attended:
        says = _("No worker has been there for long enough, so what a leader mends by itself was not looked at.")
        yield Line(Level.ATTENTION, "leader", says, _("Start a worker, and check again a minute later."))
    if checked.unanswered:
        says = _("Not answered in time: %(names)s.") % {
            "names": listed([_(one.says) for one in INVARIANTS if one.name in checked.unanswered])
        }
        yield Line(
            Level.ATTENTION, "unanswered", says, _("The database is busy, or its statistics are old: VACUUM ANALYZE.")
        )


def _answered(promise: Promise, checked: Checked) -> int:
    """How many of its statements were asked and answered."""
    broker = conf().messaging.broker
    return sum(
        one.promise is promise
        and (checked.attended or not one.soon)
        and (broker or not one.broker)
        and one.name not in checked.unanswered
        for one in INVARIANTS
    )


def _broken(finding: Finding) -> Line:
    values = {"says": _(finding.says), "n": finding.count, "ids": listed(finding.examples)}
    says = (
        _("%(says)s This does not hold for %(n)d or more: %(ids)s.")
        if finding.more
        else _("%(says)s This does not hold for %(n)d: %(ids)s.")
    ) % values
    facts = {"invariant": finding.name, "count": finding.count, "more": finding.more}
    facts |= {"examples": list(finding.examples)}
    return Line(Level.BROKEN, finding.promise, says, _(finding.advice), facts)


def _last() -> Iterator[Line]:
    last = queries.promises().last
    if last is not None and last.age <= OLD:
        says = _("The leader has looked %(span)s ago.") % {"span": span(last.age)}
        yield Line(Level.OK, "last_look", says, facts={"age": round(last.age, 1)})
        return
    says = (
        _("The leader has never looked.")
        if last is None
        else _("The leader has not looked for %(span)s.") % {"span": span(last.age)}
    )
    yield Line(Level.ATTENTION, "last_look", says, _("It looks every minute while a worker runs."))
