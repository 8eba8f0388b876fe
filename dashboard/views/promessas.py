"""The promises: do they hold, since when, what is to be done; the last storm."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.fragments import fragment
from dashboard.promises import screen
from dashboard.views.guard import signed_in


@require_safe
@signed_in
def page(request: HttpRequest) -> HttpResponse:
    """The whole page."""
    return render(request, "dashboard/promessas/page.html", {"screen": "promessas", "found": screen()})


@require_safe
@signed_in
def part(request: HttpRequest) -> HttpResponse:
    """What changes with each look of the leader."""
    return fragment(request, "dashboard/promessas/now.html", {"found": screen()})
