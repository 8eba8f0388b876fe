"""What may be done to many at once: the verbs, and the states of a job to which each applies."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from uuid import UUID

from django.utils.translation import gettext as _

from jobs import transitions
from jobs.errors import Invalid
from jobs.models.bulk import ACTS
from jobs.outcomes import Verdict
from jobs.states import State


class Target(StrEnum):
    """What an act is done to."""

    JOBS = "jobs"
    LETTERS = "letters"


class Act(StrEnum):
    """What is done; dead letters know requeue and discard, jobs the others and requeue."""

    CANCEL = "cancel"
    REQUEUE = "requeue"
    DELETE = "delete"
    RUN_NOW = "run_now"
    DISCARD = "discard"


# A Scheduled job without an instant (parked) can be cancelled and not run now.
APPLIES: dict[tuple[Target, Act], frozenset[State]] = {
    (Target.JOBS, Act.CANCEL): frozenset({State.SCHEDULED, State.ENQUEUED, State.PROCESSING}),
    (Target.JOBS, Act.REQUEUE): frozenset({State.FAILED, State.CANCELLED}),
    (Target.JOBS, Act.DELETE): frozenset({State.SUCCEEDED, State.FAILED, State.CANCELLED}),
    (Target.JOBS, Act.RUN_NOW): frozenset({State.SCHEDULED}),
    (Target.LETTERS, Act.REQUEUE): frozenset({State.FAILED}),
    (Target.LETTERS, Act.DISCARD): frozenset({State.FAILED}),
}
# Acts that nothing takes back: the size is said, and typed, before more than one.
FINAL_ACTS = frozenset({Act.DELETE, Act.DISCARD})

type Verb = Callable[[Sequence[UUID], str | None, str | None], list[Verdict]]

VERBS: dict[tuple[Target, Act], Verb] = {
    (Target.JOBS, Act.CANCEL): lambda ids, actor, reason: transitions.cancel(ids, actor=actor, reason=reason),
    (Target.JOBS, Act.REQUEUE): lambda ids, actor, _reason: transitions.requeue(ids, actor=actor),
    (Target.JOBS, Act.DELETE): lambda ids, _actor, _reason: transitions.delete(ids),
    (Target.JOBS, Act.RUN_NOW): lambda ids, actor, _reason: transitions.run_now(ids, actor=actor),
    (Target.LETTERS, Act.REQUEUE): lambda ids, actor, _reason: transitions.requeue_letters(ids, actor=actor),
    (Target.LETTERS, Act.DISCARD): lambda ids, actor, _reason: transitions.discard(ids, actor=actor),
}


def known(act: str, target: str) -> tuple[Act, Target]:
    """The act and its target. Raises Invalid, with words, for what is no act or not one of that target."""
    if target not in ACTS:
        raise Invalid(
            _("Expected one of: %(names)s.") % {"names": ", ".join(ACTS)},
            errors={"target": [_("Expected one of: %(names)s.") % {"names": ", ".join(ACTS)}]},
        )
    if act not in ACTS[target]:
        names = ", ".join(ACTS[target])
        told = _("Expected one of: %(names)s.") % {"names": names}
        raise Invalid(told, errors={"act": [told]})
    return Act(act), Target(target)
