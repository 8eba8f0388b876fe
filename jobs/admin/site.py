"""The admin's site: who may enter, and that its one login is the house's own, which is throttled."""

from collections.abc import Callable
from functools import update_wrapper
from typing import Any
from urllib.parse import urlencode

from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache

from jobs import access
from jobs.errors import Forbidden, Unauthorized
from jobs.reconnect import replace_broken

LOGIN = "/entrar"


def _asked_to_sign_in(request: HttpRequest, wanted: str) -> HttpResponse:
    """Where a person signs in. Raises Forbidden for a user without the right, Unauthorized for a program."""
    if access.mode(request) is access.Mode.CLOSED:
        raise Forbidden(access.closed_reason())
    if access.user_of(request) is not None:
        raise Forbidden(
            _(
                "Your user may not enter the administration: it takes staff status. Ask an administrator for it, or"
                " sign out and come in as another user."
            )
        )
    if "text/html" not in request.META.get("HTTP_ACCEPT", ""):
        raise Unauthorized(_("The administration takes a user with staff status: sign in at /entrar with a browser."))
    return HttpResponseRedirect(f"{LOGIN}?{urlencode({'com': 'usuario', 'next': wanted})}")


class TurnoAdminSite(AdminSite):
    """For users who operate (`jobs.access`), each with the rights that its model permissions give."""

    site_title = "Turno"
    site_header = "Turno"
    index_title = gettext_lazy("Administration")
    site_url = "/"
    enable_nav_sidebar = False

    def has_permission(self, request: HttpRequest) -> bool:
        """The request's user may enter; a key or an open house is not enough, since acts here bear a name."""
        if access.mode(request) is access.Mode.CLOSED:
            return False
        user = access.user_of(request)
        return user is not None and access.operates(user)

    def admin_view(self, view: Callable[..., Any], cacheable: bool = False) -> Callable[..., Any]:
        """Django's, with a usable connection, and with our login for whoever may not enter."""
        inner = super().admin_view(view, cacheable)

        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            replace_broken()
            if not self.has_permission(request):
                return _asked_to_sign_in(request, request.get_full_path())
            return inner(request, *args, **kwargs)

        return update_wrapper(guarded, inner)

    @method_decorator(never_cache)
    def login(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Django's form would not be throttled: ours is shown instead."""
        replace_broken()
        wanted = request.GET.get("next", "")
        if not wanted.startswith("/admin/"):
            wanted = "/admin/"
        if self.has_permission(request):
            return HttpResponseRedirect(wanted)
        return _asked_to_sign_in(request, wanted)

    def logout(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """End the session, and to the house's login."""
        if request.method != "POST":
            return HttpResponseRedirect("/admin/")
        access.sign_out(request)
        return HttpResponseRedirect(LOGIN)


site = TurnoAdminSite(name="admin")
