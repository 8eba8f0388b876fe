"""The board in detail: a table of workers by slots, a queue's slots side by side. HTML by hand: a thousand cells in
a few milliseconds. Whatever comes from a job or a worker goes through `text`."""

from collections.abc import Iterable, Sequence
from uuid import UUID

from django.utils.translation import gettext as _

from dashboard.board.layout import MOST_COLUMNS, Lane, Row
from dashboard.board.links import Links
from dashboard.board.seen import short
from dashboard.board.speech import Speech, mark, since, state_mark, text, until
from jobs.queries import Depth, Running, Seat
from jobs.wording import ago, count

GAP = '<td class="gap"></td>'
NOTHING = '<td class="is-free"></td>'
STAGE_SHOWN = 18  # characters that surely fit; longer ones are in the title too


def head_id(queue: str) -> str:
    """The id of a queue's head; a queue's name may hold dots."""
    return f"q-{short(queue, 8)}"


def waiting(depth: Depth) -> str:
    """ "44 queued, the oldest for 0:42", or nothing."""
    jobs = depth.waiting + depth.parked
    if not jobs:
        return ""
    told = {"n": count(jobs, depth.estimated or depth.parked_at_least)}
    if depth.paused is not None or depth.oldest_for is None:
        return _("%(n)s queued") % told
    return _("%(n)s queued, the oldest for %(span)s") % {**told, "span": since(depth.oldest_for)}


def head(lane: Lane, links: Links) -> str:
    """The head of a queue's columns: how full, how deep, how old, whether paused."""
    parts, paused, depth = [], "", lane.depth
    if depth is not None:
        if depth.paused is not None:
            paused = mark("paused")
            parts.append(text(_("paused")))
        else:
            parts.append(text(_("%(busy)s of %(slots)s") % {"busy": depth.busy, "slots": depth.capacity}))
        deep = waiting(depth)
        if deep:
            parts.append(deep)
    name = f'<a href="{text(links.queue(lane.queue))}">{text(lane.queue)}</a>'
    return f'<div class="q" id="{head_id(lane.queue)}">{name}{paused}<span>{" · ".join(parts)}</span></div>'


def _job(job: Running, cell: str, words: Speech, links: Links) -> str:
    lost = job.returns_in is not None
    classes = "slot slot--lost" if lost else "slot slot--slow" if job.slow else "slot"
    if job.returns_in is not None:
        stage = words.back_in % until(job.returns_in)
    elif job.cancelling:
        stage = words.cancelling
    elif not job.started:
        stage = words.starting
    else:
        stage = text(job.stage)
    title = f"{words.slow}. {job.stage}" if job.slow and not lost else job.stage
    long = job.slow or len(job.stage) > STAGE_SHOWN or len(job.type) > STAGE_SHOWN
    name = text(job.type)
    value = f' value="{job.progress}"' if job.has_progress else ""
    return (
        f'<td><a class="{classes}" id="{cell}" href="{links.job(job.id)}"'
        f"{f' title="{name}. {text(title)}"' if long else ''}>"
        f'<span class="slot__type">{name}</span><span class="slot__stage">{stage}</span>'
        f'<span class="slot__row"><span class="el">{since(job.elapsed)}</span>'
        f'<progress class="progress"{value} max="100" aria-label="{words.progress_of % name}"></progress>'
        f'<span class="slot__queue">{text(job.queue)}</span></span></a></td>'
    )


def _empty(seat: Seat, words: Speech) -> str:
    kind, said = ("free", words.free) if seat.accepts else ("shut", words.shut)
    return f'<td class="is-free"><span class="slot slot--{kind}"><span class="vh">{said}</span></span></td>'


def meta_id(worker: UUID) -> str:
    """The id of the words below a worker's name."""
    return f"m-{worker}"


def meta(row: Row, words: Speech) -> str:
    """The words below a worker's name."""
    worker = row.worker
    if row.gone and worker.state == "Offline":
        said = words.ended
    elif worker.lost:
        said = words.no_sign % since(worker.seen_ago)
    else:
        said = words.busy_of % {"busy": worker.busy, "slots": row.slots}
        if worker.state == "Draining":
            said = f"{words.draining} · {said}"
        else:
            said = f'{said} · <time data-ago="{int(worker.seen_ago)}">{ago(worker.seen_ago)}</time>'
    return f'<span class="who__meta" id="{meta_id(worker.id)}">{said}</span>'


def shown_state(row: Row) -> str:
    """The state under which a row is shown: one that gives no sign and still owns jobs is lost, however long ago."""
    if row.gone:
        return row.worker.state
    return "Silent" if row.worker.lost else row.worker.state


def tr(row: Row, columns: Sequence[Lane], words: Speech, links: Links) -> str:
    """A worker's row: only cells of queues that it serves, and as many as it has."""
    worker, state = row.worker, shown_state(row)
    name = text(worker.name)
    out = [
        f'<tr id="w-{worker.id}" data-keep="hidden" data-name="{name.lower()}"{" data-trouble" if row.trouble else ""}>'
        f'<th class="who" scope="row"><span class="who__name">{state_mark(state)}'
        f'<a href="{links.worker(worker.id)}" title="{name}">{name}</a>'
        f'<span class="vh">, {words.states[state]}</span></span>{meta(row, words)}</th>'
    ]
    number = 0
    for at, lane in enumerate(columns):
        if at:
            out.append(GAP)
        seats = row.seats.get(lane.queue, ())
        for place in range(lane.width):
            number += 1
            if place >= len(seats):
                out.append(NOTHING)
                continue
            seat = seats[place]
            if seat.job is None:
                out.append(_empty(seat, words))
            else:
                out.append(_job(seat.job, f"s-{worker.id}-{number}", words, links))
    out.append(f"{GAP}</tr>")
    return "".join(out)


def table(shown: Iterable[Row], columns: Sequence[Lane], words: Speech, links: Links) -> str:
    """The whole board."""
    caption, who = text(_("A worker a row, a slot a cell, grouped by queue")), text(_("Worker"))
    wide = sum(lane.width for lane in columns) > MOST_COLUMNS
    cols = '<col class="gap">'.join(f'<col span="{lane.width}">' for lane in columns)
    heads = GAP.join(f'<th scope="colgroup" colspan="{lane.width}">{head(lane, links)}</th>' for lane in columns)
    return (
        f'<table class="board{" board--blocks" if wide else ""}" id="quadro-tabela">'
        f'<caption class="vh">{caption}</caption>'
        f'<colgroup><col class="who">{cols}<col class="end"></colgroup>'
        f'<thead><tr><th class="who" scope="col">{who}</th>{heads}{GAP}</tr></thead>'
        f"<tbody>{''.join(tr(row, columns, words, links) for row in shown)}</tbody></table>"
    )
