"""Which jobs there are, of those that somebody has a trace of."""

from collections.abc import Iterable
from uuid import UUID

from jobs.models import Job
from jobs.reconnect import replace_broken
from jobs.states import State


def states(ids: Iterable[UUID], *, using: str = "default") -> dict[UUID, State]:
    """The state of each of these jobs; those that do not exist (any more) are left out."""
    replace_broken(using)
    rows = Job.objects.using(using).filter(id__in=set(ids)).values_list("id", "state")
    return {id_: State(state) for id_, state in rows}
