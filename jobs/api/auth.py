"""How `jobs.access` stands in the OpenAPI document: three ways in, one decision."""

from functools import wraps
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _
from ninja.security.base import AuthBase

from jobs import access
from jobs.api.middleware import error_answer, for_program
from jobs.api.problems import as_refused
from jobs.conf import conf
from jobs.errors import NotFound, Refused
from jobs.reconnect import replace_broken

LOGIN = "/entrar"


def _enter(request: HttpRequest) -> str:
    if settings.SESSION_COOKIE_NAME in request.COOKIES:
        replace_broken()  # the session is read from the database; a key is not
    return access.enter(request)


class TurnoKey(AuthBase):
    """The access key in a header of its own. Decides for all three: a request is judged once."""

    openapi_type = "apiKey"
    openapi_in = "header"
    openapi_name = "X-Turno-Key"

    def __call__(self, request: HttpRequest) -> str:
        actor = _enter(request)
        replace_broken()
        return actor


class BearerKey(AuthBase):
    """The same key as a bearer token."""

    openapi_type = "http"
    openapi_scheme = "bearer"

    def __call__(self, request: HttpRequest) -> str | None:
        return None


class Session(AuthBase):
    """The session that /entrar opens."""

    openapi_type = "apiKey"
    openapi_in = "cookie"
    openapi_name = "turno_session"

    def __call__(self, request: HttpRequest) -> str | None:
        return None


KEYED = [TurnoKey(), BearerKey(), Session()]


def documents_guard(view: Any) -> Any:
    """The OpenAPI document and the pages about it: a browser that may not see them is sent to the login."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            if not conf().api.docs:
                raise NotFound(_("The API's pages are switched off here (api.docs)."))
            _enter(request)
        except (Refused, DatabaseError) as error:
            refused = as_refused(error)
            if refused.status == 401 and not for_program(request):
                return HttpResponseRedirect(f"{LOGIN}?{urlencode({'next': request.get_full_path()})}")
            return error_answer(request, refused)
        return view(request, *args, **kwargs)

    return guarded
