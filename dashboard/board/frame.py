"""What stands around the board's rows: the summary, the offer of newcomers, what is lost, the empty board."""

from collections.abc import Sequence

from django.template.loader import render_to_string
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from dashboard.board.links import Links
from dashboard.board.speech import text, until, workers
from jobs.queries import Board, Depth, Running
from jobs.wording import count


def summary(board: Board) -> str:
    """ "6 workers · 25 of 32 slots busy"."""
    busy = _("%(busy)s of %(slots)s slots busy") % {"busy": count(board.busy), "slots": count(board.capacity)}
    said = f"{workers(len(board.workers))} · {busy}" if board.workers else ""
    return f'<span class="muted small" id="quadro-resumo">{text(said)}</span>'


def troubles(n: int) -> str:
    """How many rows a person may want to look at, beside the filter that shows only these."""
    return f'<span class="count" id="quadro-problemas">{count(n)}</span>'


def offer(came: int, left: int) -> str:
    """The line that offers what the page does not show, or its empty place."""
    if not came and not left:
        return '<div id="quadro-novos" hidden></div>'
    said = []
    if came:
        said.append(ngettext("%(n)s new worker", "%(n)s new workers", came) % {"n": count(came)})
    if left:
        said.append(ngettext("%(n)s worker left", "%(n)s workers left", left) % {"n": count(left)})
    show = pgettext("newcomers", "Show")
    words = text(f"{', '.join(said)} · {show}")
    return f'<div id="quadro-novos"><a class="newrows" href="" data-reload>{words}</a></div>'


def strays(jobs: Sequence[Running], links: Links) -> str:
    """Running jobs whose worker has no row any more, or an empty place."""
    if not jobs:
        return '<div id="quadro-perdidas" hidden></div>'
    said = ngettext(
        "%(n)s job whose worker is gone", "%(n)s jobs whose workers are gone", len(jobs)
    ) % {"n": count(len(jobs))}  # fmt: skip
    first = min((job.returns_in for job in jobs if job.returns_in is not None), default=0.0)
    back = _("back to the queue in %s") % until(first)
    return (
        f'<div id="quadro-perdidas"><p class="panel__foot"><a href="{links.jobs}?estado=executando">{text(said)}</a>'
        f"<span>{back}</span></p></div>"
    )


def empty(depths: Sequence[Depth]) -> str:
    """No workers: how to start one, and how many jobs wait for it."""
    waiting = sum(depth.waiting + depth.parked for depth in depths)
    estimated = any(depth.estimated or depth.parked_at_least for depth in depths)
    return render_to_string("dashboard/painel/no_workers.html", {"waiting": waiting, "estimated": estimated})
