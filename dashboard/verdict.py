"""The first line of the Painel: in words, whether something needs a person."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from jobs.queries import Board, Concern, Kind
from jobs.wording import count


@dataclass(frozen=True, slots=True)
class Verdict:
    """`mark` is the state's mark that stands before the words."""

    mark: str
    words: str


def away() -> Verdict:
    """The database does not answer: nothing else is known."""
    return Verdict("failure", _("The database does not answer"))


def verdict(board: Board, concerns: Sequence[Concern]) -> Verdict:
    """What is to be said of the board and of what needs a person."""
    if not any(worker.live for worker in board.workers):
        return Verdict("failure", _("No worker online: nothing runs"))
    if not concerns:
        return Verdict("success", _("All good"))
    if any(one.kind is Kind.BROKER_AWAY for one in concerns):  # nothing else matters as much: no work flows
        return Verdict("failure", _("The broker does not answer: jobs wait"))
    if all(one.kind is Kind.WORKER_LOST and one.facts["name"] is not None for one in concerns):
        return Verdict("failure", _fleet(len(board.lost), board.count("Draining")))
    words = ngettext("%(n)s needs attention", "%(n)s need attention", len(concerns)) % {"n": count(len(concerns))}
    mark = "failure" if any(one.severity == "failure" for one in concerns) else "paused"
    return Verdict(mark, words)


def _fleet(lost: int, draining: int) -> str:
    """Only workers are concerned: they are counted, and those that leave on purpose beside them."""
    words = ngettext("%(n)s worker without a heartbeat", "%(n)s workers without a heartbeat", lost) % {"n": count(lost)}
    if not draining:
        return words
    leaving = ngettext("%(n)s draining", "%(n)s draining", draining) % {"n": count(draining)}
    return f"{words}, {leaving}"
