"""What can be done to a job in its state, and why the rest can't: one rule for the list and for the job's own page."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from jobs.bulk import APPLIES, Act, Target
from jobs.states import FINAL, State

ACTS = (Act.CANCEL, Act.REQUEUE, Act.DELETE, Act.RUN_NOW)


def why_not(job: Mapping[str, Any], *, cancelling: bool) -> dict[Act, str]:
    """For each act why it does not apply, "" where it does. `cancelling`: the running job was asked to stop."""
    state = State(job["state"])
    reasons = {
        Act.CANCEL: _("Already finished"),
        Act.REQUEUE: _("It has succeeded") if state in FINAL else _("Only after it finishes"),
        Act.DELETE: _("Only after it finishes"),
        Act.RUN_NOW: _("It does not wait for an instant"),
    }
    found = {act: "" if state in APPLIES[Target.JOBS, act] else reasons[act] for act in ACTS}
    if cancelling and state is State.PROCESSING:
        found[Act.CANCEL] = _("Cancel requested already")
    if job["run_at"] is None:
        found[Act.RUN_NOW] = reasons[Act.RUN_NOW]
    return found
