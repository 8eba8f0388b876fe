"""The board as a mosaic: a worker a line, a slot a cell, progress in steps of ten. HTML by hand, as in `detail`."""

from collections.abc import Iterable
from itertools import chain

from django.utils.translation import gettext as _

from dashboard.board.detail import meta_id, shown_state
from dashboard.board.layout import Pool, Row
from dashboard.board.links import Links
from dashboard.board.seen import short
from dashboard.board.speech import Speech, mark, since, state_mark, text, workers
from jobs.queries import Seat
from jobs.wording import count

# The largest pool of each density: slots of its workers, and the class that fits them.
DENSITIES = ((8, "mosaic"), (16, "mosaic mosaic--16"))
DENSEST = "mosaic mosaic--64"
NAME_FITS = 11  # characters of a worker's name in its column


def pool_id(pool: Pool) -> str:
    """The id of a pool: what its workers serve."""
    return short(repr(pool.queues), 8)


def code(seat: Seat) -> str:
    """A cell's attributes: they stand for all that it shows, so rows are compared by them."""
    job = seat.job
    if job is None:
        return "" if seat.accepts else ' data-s="shut"'
    if job.returns_in is not None:
        return ' data-s="lost"'
    step = str(job.progress // 10) if job.has_progress else "x"
    return f' data-p="{step}" data-s="slow"' if job.slow else f' data-p="{step}"'


def codes(row: Row) -> list[list[str]]:
    """The attributes of a row's cells, by queue."""
    return [[code(seat) for seat in seats] for seats in row.seats.values()]


def _cells(row: Row) -> str:
    parts = []
    for at, queue in enumerate(codes(row)):
        for place, attributes in enumerate(queue):
            parts.append(f'<i class="c{" gap" if at and not place else ""}"{attributes}></i>')
    return "".join(parts)


def reading(row: Row, words: Speech) -> str:
    """What the line at the foot says of a worker, kept in its row out of sight; the page moves the clock in it."""
    worker = row.worker
    busy = words.slots_busy_of % {"busy": worker.busy, "slots": row.slots}
    said, job = f"{text(worker.name)}: {busy}.", worker.longest
    if job is not None:
        longest = words.longest % {"type": text(job.type), "elapsed": since(job.elapsed)}
        stage = f", {text(job.stage)}" if job.stage else ""
        said = f"{said} {longest}{stage}."
    return f'<span id="{meta_id(worker.id)}" data-read hidden>{said}</span>'


def line(row: Row, words: Speech, links: Links) -> str:
    """A worker: its name and its cells, as one link that says state and occupancy."""
    worker, state = row.worker, shown_state(row)
    name = text(worker.name)
    busy = words.slots_busy_of % {"busy": worker.busy, "slots": row.slots}
    return (
        f'<a class="wk" id="w-{worker.id}" href="{links.worker(worker.id)}" data-keep="tabindex hidden"'
        f' data-name="{name.lower()}"{" data-trouble" if row.trouble else ""}'
        f' aria-label="{name}, {words.states[state]}, {text(busy)}">'
        f'<span class="wk__n">{state_mark(state)}<span class="wk__t" title="{name}">{name}</span></span>'
        f'<span class="wk__c" aria-hidden="true">{_cells(row)}</span>{reading(row, words)}</a>'
    )


def pool_head(pool: Pool, words: Speech, paused: frozenset[str] = frozenset()) -> str:
    """A pool's head: how many workers, what they serve, how full they are."""
    stands = f" {mark('paused')}{text(words.paused)}"
    served = [f"{text(queue)} {slots}{stands if queue in paused else ''}" for queue, slots in pool.queues]
    busy = text(_("%(busy)s of %(slots)s busy") % {"busy": count(pool.busy), "slots": count(pool.capacity)})
    said = " · ".join([text(workers(len(pool.rows))), *served, busy])
    return (
        f'<div class="pool__head" id="g-{pool_id(pool)}"><h3>{text(pool.name)}</h3>'
        f'<span class="muted">{said}</span></div>'
    )


def _density(pool: Pool) -> str:
    slots = max(pool.slots, max((row.slots for row in pool.rows), default=0))
    fits = next((name for most, name in DENSITIES if slots <= most), DENSEST)
    longest = max((len(row.worker.name) for row in pool.rows), default=0)
    return f"{fits} mosaic--names" if longest > NAME_FITS else fits


def html(found: Iterable[Pool], words: Speech, links: Links, paused: frozenset[str] = frozenset()) -> str:
    """The whole board."""
    return "".join(
        chain.from_iterable(
            (
                f'<div class="pool" id="p-{pool_id(pool)}">{pool_head(pool, words, paused)}',
                f'<div class="{_density(pool)}" data-roving>',
                *(line(row, words, links) for row in pool.rows),
                "</div></div>",
            )
            for pool in found
        )
    )
