"""Dead letters: list them, requeue or discard one or many."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest
from django.utils.translation import gettext_lazy
from ninja import Query, Router
from ninja.responses import Status

from jobs import operations, queries
from jobs.api.openapi import COMMON, CONFLICT, MISSING
from jobs.api.queryparams import refuse_strange
from jobs.api.routes_bulk import ANSWERS, begin
from jobs.api.schemas_bulk import BulkLettersIn
from jobs.api.schemas_letters import LetterActOut, LettersOut, LettersQuery
from jobs.bulk import Act, Target
from jobs.queries.letterlist import letter_list

router = Router(tags=["dead letters"])


def _actor(request: HttpRequest) -> str:
    return str(getattr(request, "auth", ""))


@router.get(
    "",
    response={200: LettersOut, **COMMON},
    operation_id="listDeadLetters",
    summary=gettext_lazy("List dead letters, newest first"),
)
def list_letters(request: HttpRequest, filters: Query[LettersQuery]) -> dict[str, Any]:
    refuse_strange(request, LettersQuery)
    wanted = queries.LetterFilter(fingerprint=filters.fingerprint, type=filters.type, queue=filters.queue)
    after = queries.LetterCursor.parse(filters.cursor) if filters.cursor is not None else None
    page = letter_list(wanted, pending=filters.pending, size=filters.page_size, after=after)
    return {
        "items": page.items,
        "next_cursor": str(page.next_cursor) if page.next_cursor is not None else None,
        "page_size": filters.page_size,
    }


def _letters(request: HttpRequest, act: Act, body: BulkLettersIn) -> Status[Any]:
    wanted = queries.LetterFilter(**body.filter.given()) if body.filter is not None else None
    return begin(request, act, Target.LETTERS, body, wanted)


@router.post(
    "/bulk/requeue",
    response=ANSWERS,
    operation_id="requeueDeadLetters",
    summary=gettext_lazy("Run the jobs of many dead letters again, by ids or by filter"),
)
def requeue_letters(request: HttpRequest, body: BulkLettersIn) -> Status[Any]:
    return _letters(request, Act.REQUEUE, body)


@router.post(
    "/bulk/discard",
    response=ANSWERS,
    operation_id="discardDeadLetters",
    summary=gettext_lazy("Discard many dead letters, by ids or by filter; their jobs stay Failed"),
)
def discard_letters(request: HttpRequest, body: BulkLettersIn) -> Status[Any]:
    return _letters(request, Act.DISCARD, body)


@router.post(
    "/{id}/requeue",
    response={200: LetterActOut, **COMMON, **MISSING, **CONFLICT},
    operation_id="requeueDeadLetter",
    summary=gettext_lazy("Run a dead letter's job again"),
)
def requeue_letter(request: HttpRequest, id: UUID) -> dict[str, Any]:
    verdict = operations.requeue_letter(id, actor=_actor(request))
    return {"id": verdict.id, "state": verdict.state, "resolved_how": "requeued"}


@router.delete(
    "/{id}",
    response={204: None, **COMMON, **MISSING, **CONFLICT},
    operation_id="discardDeadLetter",
    summary=gettext_lazy("Discard a dead letter; its job stays Failed"),
)
def discard_letter(request: HttpRequest, id: UUID) -> Status[None]:
    operations.discard_letter(id, actor=_actor(request))
    return Status(204, None)
