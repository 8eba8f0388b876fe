"""The panel's socket address over plain HTTP: a browser that was refused the socket can't tell why, and asks here."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from dashboard.views.guard import signed_in


@never_cache
@require_safe
@signed_in
def hub(_request: HttpRequest) -> HttpResponse:
    """204: this browser may see the pages; 401: its session has ended."""
    return HttpResponse(status=204)
