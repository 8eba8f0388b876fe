"""What acts over many say: the question before, how far they are, what came of them."""

from collections.abc import Callable
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from dashboard.templatetags.shown import mark, word
from jobs.bulk import FINAL_ACTS, Act, Preview, Run, Target
from jobs.wording import count

# Above so many an act that can be taken back is asked about, and above so many its size is typed.
ASKED_ABOVE, TYPED_ABOVE = 20, 100

type Counted = Callable[[int], str]

TITLES: dict[Act, Counted] = {
    Act.CANCEL: lambda n: ngettext("Cancel %(n)s job?", "Cancel %(n)s jobs?", n),
    Act.REQUEUE: lambda n: ngettext("Requeue %(n)s job?", "Requeue %(n)s jobs?", n),
    Act.DELETE: lambda n: ngettext("Delete %(n)s job?", "Delete %(n)s jobs?", n),
    Act.RUN_NOW: lambda n: ngettext("Run %(n)s job now?", "Run %(n)s jobs now?", n),
    Act.DISCARD: lambda n: ngettext("Discard %(n)s job?", "Discard %(n)s jobs?", n),
}
VERBS: dict[Act, Promise] = {
    Act.CANCEL: gettext_lazy("Cancel %(n)s"),
    Act.REQUEUE: gettext_lazy("Requeue %(n)s"),
    Act.DELETE: gettext_lazy("Delete %(n)s"),
    Act.RUN_NOW: gettext_lazy("Run %(n)s now"),
    Act.DISCARD: gettext_lazy("Discard %(n)s"),
}
TEXTS: dict[Act, Counted] = {
    Act.CANCEL: lambda n: ngettext(
        "If it waits it ends at once; if it runs it is asked to stop.",
        "Those that wait end at once; those that run are asked to stop.",
        n,
    ),
    Act.REQUEUE: lambda n: ngettext(
        "It runs again, with attempts counted from zero.", "They run again, with attempts counted from zero.", n
    ),
    Act.DELETE: lambda n: ngettext(
        "It goes with its history. This cannot be undone.", "They go with their history. This cannot be undone.", n
    ),
    Act.RUN_NOW: lambda n: ngettext("It does not wait for its instant.", "They do not wait for their instant.", n),
    Act.DISCARD: lambda n: ngettext(
        "It leaves the dead letters and does not run again; the job stays failed. This cannot be undone.",
        "They leave the dead letters and do not run again; the jobs stay failed. This cannot be undone.",
        n,
    ),
}
UNDER_WAY: dict[Act, Promise] = {
    Act.CANCEL: gettext_lazy("Cancelling…"),
    Act.REQUEUE: gettext_lazy("Requeueing…"),
    Act.DELETE: gettext_lazy("Deleting…"),
    Act.RUN_NOW: gettext_lazy("Enqueueing…"),
    Act.DISCARD: gettext_lazy("Discarding…"),
}
DONE: dict[Act, Counted] = {
    Act.CANCEL: lambda n: ngettext("%(n)s job cancelled", "%(n)s jobs cancelled", n),
    Act.REQUEUE: lambda n: ngettext("%(n)s job requeued", "%(n)s jobs requeued", n),
    Act.DELETE: lambda n: ngettext("%(n)s job deleted", "%(n)s jobs deleted", n),
    Act.RUN_NOW: lambda n: ngettext("%(n)s job enqueued", "%(n)s jobs enqueued", n),
    Act.DISCARD: lambda n: ngettext("%(n)s job discarded", "%(n)s jobs discarded", n),
}
SKIPPED: dict[str, Counted] = {
    "not_found": lambda n: ngettext("%(n)s no longer existed", "%(n)s no longer existed", n),
    "state": lambda n: ngettext("%(n)s was in another state by then", "%(n)s were in another state by then", n),
    "unique_key": lambda n: ngettext(
        "%(n)s has a unique key that another active job holds", "%(n)s have unique keys that other active jobs hold", n
    ),
    "gate": lambda n: ngettext("%(n)s waits for no instant", "%(n)s wait for no instant", n),
    "resolved": lambda n: ngettext("%(n)s had been dealt with before", "%(n)s had been dealt with before", n),
    "busy": lambda n: ngettext("%(n)s was locked by another change", "%(n)s were locked by other changes", n),
}
NOTHING: dict[Act, Promise] = {
    Act.CANCEL: gettext_lazy("Nothing to cancel here: only jobs that have not ended."),
    Act.REQUEUE: gettext_lazy("Nothing to requeue here: only jobs that failed or were cancelled."),
    Act.DELETE: gettext_lazy("Nothing to delete here: only jobs that have ended."),
    Act.RUN_NOW: gettext_lazy("Nothing to run now here: only jobs that wait for their instant."),
    Act.DISCARD: gettext_lazy("Nothing to discard here: only dead letters that are pending."),
}


def _said(words: Counted, number: int) -> str:
    return words(number) % {"n": count(number)}


def skipped(run: Run) -> str:
    """What the act did not apply to, and why: "3 no longer existed, 2 were in another state by then"."""
    known = [_said(SKIPPED[why], number) for why, number in sorted(run.skipped.items()) if why in SKIPPED]
    return ", ".join(known)


def told(run: Run) -> tuple[str, str]:
    """Title and detail of a run as it stands."""
    if not run.ended:
        return str(UNDER_WAY[run.act]), _progress(run)
    title = _said(DONE[run.act], run.applied)
    parts = [skipped(run)]
    if run.requested:
        parts.insert(0, _("%(n)s of them still running: asked to stop") % {"n": count(run.requested)})
    if run.state == "stopped":
        parts.insert(0, _("stopped before the end"))
    if run.state == "failed":
        return _("Not finished."), "; ".join([title, str(run.error)])
    return title, "; ".join(part for part in parts if part)


def _progress(run: Run) -> str:
    if run.state == "stopping":
        return _("Stopping…")
    if run.waiting and not run.done:
        return _("Waiting for its turn")
    if run.total is None:
        return count(run.done)
    return _("%(done)s of %(total)s") % {"done": count(run.done), "total": count(run.total, run.estimated)}


def percent(run: Run) -> int | None:
    """How far it is, 0 to 100; None where nobody knows how many there are."""
    if run.ended:
        return 100
    return min(99, run.done * 100 // run.total) if run.total else None


def question(found: Preview, act: Act, target: Target, *, wide: bool, filters: list[str]) -> dict[str, Any]:
    """The dialog: title, text, list, verb, what must be typed; `ask` is False where nobody need be asked.

    `wide`: everything that matches a filter, and not a selection or one cause.
    """
    number = found.count
    shown = _("all") if number is None else count(number, found.estimated)
    n = 2 if number is None else number
    final = act in FINAL_ACTS
    typed = number is None or (number > 1 if final else number > TYPED_ABOVE or (wide and number > 1))
    counted = {
        state: _("not counted") if each is None else count(each, found.estimated)
        for state, each in found.by_state.items()
    }
    states = [{"mark": mark(state), "text": f"{word(state)}: {said}"} for state, said in counted.items()]
    lines = [{"mark": "", "text": line} for line in filters] + (states if target is Target.JOBS else [])
    return {
        "ask": final or number is None or number > ASKED_ABOVE or (wide and number > 1),
        "none": str(NOTHING[act]) if number == 0 else "",
        "title": TITLES[act](n) % {"n": shown},
        "text": TEXTS[act](n),
        "list": lines,
        "verb": str(VERBS[act]) % {"n": shown},
        "typed": (str(number) if number is not None else shown) if typed else "",
        "reason": act is Act.CANCEL,
        "cut": final,
    }
