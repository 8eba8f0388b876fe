"""Acts over many: over the named, or over all that match a filter; on the server, in batches, with progress and stop.

`start` writes what is asked into the database and wakes a thread of this process. The browser may close and the
process may die: whoever asks for a run that nobody works on, or starts another, takes it over from its last batch.
Nothing is done twice: a batch's cursor and counters are written with it, and every verb looks at the state first.
"""

import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

import orjson
from django.db import transaction
from django.utils.translation import gettext as _

from jobs import queries
from jobs.bounds import REASON_LENGTH
from jobs.bulk import filters, previews, store
from jobs.bulk.acts import APPLIES, FINAL_ACTS, Act, Target, known
from jobs.bulk.filters import AnyFilter
from jobs.bulk.previews import Preview, Sample
from jobs.bulk.store import Run
from jobs.bulk.threads import crew
from jobs.errors import Conflict, Invalid, NotFound
from jobs.ids import new_id
from jobs.models.bulk import IDS_MOST
from jobs.text import clean

__all__ = [
    "APPLIES",
    "FINAL_ACTS",
    "IDS_MOST",
    "Act",
    "AnyFilter",
    "Preview",
    "Run",
    "Sample",
    "Target",
    "active",
    "get",
    "preview",
    "resume",
    "start",
    "stop",
    "wait",
    "wake",
]


def _field(name: str, told: str) -> Invalid:
    return Invalid(told, errors={name: [told]})


def _one_of(ids: Sequence[UUID] | None, filter: AnyFilter | None) -> list[UUID] | None:
    """The ids, each once; None when it is a filter. Raises Invalid."""
    if (ids is None) == (filter is None):
        raise _field("ids", _("Name the ids, or give a filter: one of the two."))
    if ids is None:
        return None
    named = list(dict.fromkeys(ids))
    if not named:
        raise _field("ids", _("Nothing is selected."))
    if len(named) > IDS_MOST:
        raise _field("ids", _("At most %(most)d can be named at once; use a filter for more.") % {"most": IDS_MOST})
    return named


def _cut(before: datetime | None) -> datetime:
    """The cut-off in UTC (PostgreSQL knows fewer offsets than Python). Raises Invalid for none that it can hold."""
    if before is None:
        return queries.now()
    try:
        if before.tzinfo is not None:
            return before.astimezone(UTC)
    except OverflowError:
        pass
    raise _field("before", _("Expected an instant with its zone."))


def preview(
    act: str,
    target: str = Target.JOBS,
    *,
    filter: AnyFilter | None = None,
    ids: Sequence[UUID] | None = None,
    before: datetime | None = None,
    samples: int = previews.SAMPLES,
) -> Preview:
    """What the act would apply to now: counted up to 10,000 a state, beyond that an estimate that says so.

    Raises Invalid for an act that the target does not know, and for neither or both of ids and filter.
    """
    what, whom = known(act, target)
    named = _one_of(ids, filter)
    return previews.preview(what, whom, filter, named, before=_cut(before), samples=samples)


def start(
    act: str,
    target: str = Target.JOBS,
    *,
    ids: Sequence[UUID] | None = None,
    filter: AnyFilter | None = None,
    before: datetime | None = None,
    actor: str | None = None,
    reason: str | None = None,
    id: UUID | None = None,
) -> Run:
    """Begin an act over many and return at once; `get` tells how far it is.

    `before` (the database's now() by default) cuts off what came later. `id`, from a preview, makes a repeated call
    answer with the first one's run. Raises Invalid, or Conflict when `id` belongs to another act.
    """
    what, whom = known(act, target)
    named = _one_of(ids, filter)
    if id is not None and id.version != 7:
        raise _field("id", _("Expected the id that the preview gave."))
    cut = _cut(before)
    size = previews.preview(what, whom, filter, None, before=cut, samples=0) if named is None else None
    run_id = id or new_id()
    values = {
        "id": run_id,
        "act": str(what),
        "target": str(whom),
        "ids": None if named is None else sorted(named),
        "filter": None if filter is None else orjson.dumps(filters.stored(whom, filter)).decode(),
        "before": cut,
        "actor": actor,
        "reason": None if reason is None else clean(reason, REASON_LENGTH),
        "total": size.count if size is not None else len(named or ()),
        "estimated": size is not None and size.estimated,
    }
    store.insert(values)
    run = get(run_id)
    wanted = None if filter is None else filters.stored(whom, filter)
    same_ids = named is None or run.total == len(named)
    if (run.act, run.target, run.by_ids, run.filter) != (what, whom, named is not None, wanted) or not same_ids:
        raise Conflict(_("This id belongs to another act; ask for a new preview."))
    return run


def get(id: UUID) -> Run:
    """How far a run is; takes it over when nobody works on it. Raises NotFound."""
    run = store.get(id)
    if run is None:
        raise NotFound(_("There is no bulk act %(id)s, or not any more.") % {"id": id})
    if run.waiting:
        wake()
    return run


def wait(id: UUID, seconds: float) -> Run:
    """As `get`, but not before it has ended or the seconds are over. Raises NotFound."""
    get(id)
    run = crew.wait(id, seconds)
    return run if run is not None else get(id)


def stop(id: UUID) -> Run:
    """Stop after the batch that is under way; a run that has ended stays as it is. Raises NotFound."""
    get(id)
    store.stop(id)
    return get(id)


def active(limit: int = 5) -> list[Run]:
    """The runs that have not ended, newest first; takes over those that nobody works on."""
    found = store.active(limit)
    if any(run.waiting for run in found):
        wake()
    return found


def wake() -> None:
    """Have a thread of this process look for a run that nobody works on (after the caller's transaction)."""
    transaction.on_commit(crew.wake)


def resume() -> None:
    """At the start of a process: go on with what an earlier one left. Asks nothing itself: the database may be away."""
    crew.wake()
    later = threading.Timer(store.SILENT + 1, crew.wake)  # one that died a moment ago still seems to hold its runs
    later.daemon = True
    later.start()
