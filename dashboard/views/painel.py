"""The Painel: is it all right, does work flow, where is room, what runs now. Each part is a fragment of its own."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.safestring import mark_safe
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from dashboard import board as shift
from dashboard import reads, verdict
from dashboard.charts import chart
from dashboard.concerns import listed
from dashboard.context import Navigation
from dashboard.fragments import SEEN, WHOLE, fragment, stamped
from dashboard.views.guard import signed_in
from jobs import health, queries

DENSITY = "turno_quadro"
DENSITIES = (shift.DETAIL, shift.MOSAIC)
YEAR = 365 * 86400
MANY_WORKERS = 12  # above this the board has a filter


def _chosen(request: HttpRequest) -> str | None:
    """The density that the viewer asks for, or once asked for in this browser."""
    for said in (request.GET.get("quadro"), request.COOKIES.get(DENSITY)):
        if said in DENSITIES:
            return said
    return None


def _board(request: HttpRequest) -> dict[str, Any]:
    seen = reads.board()
    density = _chosen(request) or shift.automatic(shift.rows(seen.workers))
    picture = shift.whole(seen, reads.depths(), density)
    heads = picture.heads()
    # Every text in it was escaped where it was put in: dashboard.board.
    return {
        "density": density,
        "board_body": mark_safe(picture.body()),  # noqa: S308  (escaped)
        "board_heads": {id_.removeprefix("quadro-"): mark_safe(html) for id_, html in heads.items()},  # noqa: S308  (escaped)
        "board_seen": picture.seen(heads).header(),
        "filterable": len(seen.workers) > MANY_WORKERS,
    }


def _strip() -> dict[str, Any]:
    stats, seen = reads.stats(), reads.board()
    capacity = max(seen.capacity, stats.processing)
    day = stats.last_24_hours
    ended = day.succeeded + day.failed
    return {
        "stats": stats,
        "capacity": capacity,
        "load": round(100 * stats.processing / capacity) if capacity else 0,
        # Rounded down: 100.0 % is said when nothing failed.
        "success_share": int(1000 * day.succeeded / ended) / 10 if ended else None,
    }


def _verdict() -> dict[str, Any]:
    return {"verdict": verdict.verdict(reads.board(), reads.concerns())}


def _nothing_yet(stats: queries.Stats) -> bool:
    """No job has ever been accepted, as far as the figures tell: only then the table is asked."""
    if stats.waiting or stats.timed or stats.processing or stats.last_24_hours.succeeded or stats.dead_letters:
        return False
    return not queries.page(queries.JobFilter(), size=1).items


def _away(request: HttpRequest, reports: Sequence[health.Report]) -> HttpResponse:
    """The database does not answer: who asks can not be known and nothing is shown, but that. No read waits for it."""
    context = {
        "screen": "painel",
        "reports": reports,
        "verdict": verdict.away(),
        "nav": Navigation(None, None),
        "can_operate": False,
    }
    return render(request, "dashboard/painel/away.html", context, status=503)


@signed_in
def _page(request: HttpRequest) -> HttpResponse:
    context: dict[str, Any] = {
        "screen": "painel",
        "chart": chart(reads.rhythm()),
        "nothing_yet": _nothing_yet(reads.stats()),
        "address": request.build_absolute_uri("/").rstrip("/"),
    }
    context |= _board(request) | _strip() | _verdict() | listed(reads.board(), reads.concerns())
    response = render(request, "dashboard/painel/page.html", context)
    asked = request.GET.get("quadro")
    if asked in DENSITIES:
        response.set_cookie(
            DENSITY, asked, max_age=YEAR, samesite="Lax", httponly=True, secure=settings.SESSION_COOKIE_SECURE
        )
    return response


@require_safe
@never_cache
def overview(request: HttpRequest) -> HttpResponse:
    """The page, or what is down; with `?quadro=` the density of the board is kept in this browser."""
    reports = health.check_all(only_needed=True)
    return _page(request) if all(report.ok for report in reports) else _away(request, reports)


@require_safe
@signed_in
def verdict_part(request: HttpRequest) -> HttpResponse:
    """The first line."""
    return fragment(request, "dashboard/painel/verdict.html", _verdict())


@require_safe
@signed_in
def attention_part(request: HttpRequest) -> HttpResponse:
    """What needs a person."""
    return fragment(request, "dashboard/painel/attention.html", listed(reads.board(), reads.concerns()))


@require_safe
@signed_in
def strip_part(request: HttpRequest) -> HttpResponse:
    """The seven indicators."""
    return fragment(request, "dashboard/painel/strip.html", _strip())


@require_safe
@signed_in
def rhythm_part(request: HttpRequest) -> HttpResponse:
    """Executions a minute."""
    return fragment(request, "dashboard/painel/rhythm.html", {"chart": chart(reads.rhythm())})


@require_safe
@signed_in
def board_part(request: HttpRequest) -> HttpResponse:
    """What changed on the board since the page was last told, as partials; 204 when nothing did."""
    density = request.GET.get("modo")
    seen = shift.parse(request.headers.get(SEEN))
    html, has = shift.changes(
        reads.board(),
        reads.depths(),
        density if density in DENSITIES else shift.DETAIL,
        seen.distrusted() if seen is not None and WHOLE in request.headers else seen,
        lambda: shift.ended(reads.fleet()),
    )
    return stamped(HttpResponse(html) if html else HttpResponse(status=204), has)
