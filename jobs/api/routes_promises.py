"""Do the promises hold? As the leader has found at its last look."""

from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext_lazy
from ninja import Router

from jobs.api.openapi import COMMON
from jobs.api.schemas_promises import PromisesOut
from jobs.promises import promises

router = Router(tags=["system"])


@router.get(
    "/promises",
    response={200: PromisesOut, **COMMON},
    operation_id="getPromises",
    summary=gettext_lazy("The three promises and whether they hold"),
)
def get_promises(request: HttpRequest) -> dict[str, Any]:
    found = promises()
    storm = found.storm
    return {
        "standing": found.standing,
        "look": found.look,
        "old": found.old,
        "promises": found.told,
        "storm": storm
        and {
            "at": storm.at,
            "place": storm.place,
            "seed": storm.seed,
            "seconds": storm.seconds,
            "jobs": storm.jobs,
            "faults": dict(storm.faults),
            "broken": [one.name for one in storm.broken],
        },
    }
