"""What the scripts of a list say about the selection and acts over it; `{n}` is filled in by the script."""

from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from dashboard import bulkwords
from dashboard.templatetags.shown import mark, word
from jobs.bulk import FINAL_ACTS, Act
from jobs.states import State

ACTS = (Act.CANCEL, Act.REQUEUE, Act.DELETE)
SLOT = {"n": "{n}"}


def script() -> dict[str, Any]:
    """Everything that the scripts need, in the language of the request; a pair of words is [one, many]."""
    return {"words": _words(), "acts": {str(act): _act(act) for act in ACTS}, "states": _states()}


def _words() -> dict[str, Any]:
    return {
        "selected": [ngettext("{n} selected", "{n} selected", 1), ngettext("{n} selected", "{n} selected", 2)],
        "whole": _("All {n} in the filter selected"),
        "select_before": _("Select all"),
        "select_short": _("All:"),
        "select_after": _("in the filter"),
        "many": _("many"),
        "all_of": _("All that match the filter: {filter}."),
        "all_jobs": _("All jobs, without any filter."),
        "cancel_one": _("A running job is asked to stop and may take a moment."),
    }


def _act(act: Act) -> dict[str, Any]:
    """An act's words and from how many on it is asked about, and typed."""
    final = act in FINAL_ACTS
    return {
        "title": [bulkwords.TITLES[act](n) % SLOT for n in (1, 2)],
        "verb": str(bulkwords.VERBS[act]) % SLOT,
        "text": [bulkwords.TEXTS[act](n) for n in (1, 2)],
        "ask_above": 0 if final else bulkwords.ASKED_ABOVE,
        "type_above": 1 if final else bulkwords.TYPED_ABOVE,
        "reason": act is Act.CANCEL,
    }


def _states() -> dict[str, dict[str, str]]:
    return {str(state): {"word": word(state), "mark": mark(state)} for state in State}
