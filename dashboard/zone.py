"""The one display zone of a viewer: what the browser said, or chose, in a cookie. Unknown names count as none."""

import zoneinfo
from collections.abc import Callable
from datetime import tzinfo
from functools import lru_cache

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import timezone

COOKIE = "turno_fuso"
LONGEST = 64
# Cities that people name otherwise than the tz database does.
CITIES = {"America/Sao_Paulo": "Brasília"}


@lru_cache(maxsize=256)
def zone_of(name: str) -> tzinfo | None:
    """The IANA zone of that name, or None: the name comes from a browser and may be anything."""
    if not name or len(name) > LONGEST:
        return None
    try:
        return zoneinfo.ZoneInfo(name)
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        return None


class ViewerZone:
    """Instants are shown in the viewer's zone for as long as the request is answered."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        with timezone.override(self._zone(request)):
            return self.get_response(request)

    def _zone(self, request: HttpRequest) -> tzinfo:
        return zone_of(request.COOKIES.get(COOKIE, "")) or timezone.get_default_timezone()


def label(zone: tzinfo) -> str:
    """The zone as people name it: its city, and how far it stands from UTC now."""
    now = timezone.now().astimezone(zone)
    offset = now.utcoffset()
    minutes = 0 if offset is None else round(offset.total_seconds() / 60)
    hours, rest = divmod(abs(minutes), 60)
    sign = "−" if minutes < 0 else "+"
    named = city(zone)
    shift = f"UTC{sign}{hours}" + (f":{rest:02}" if rest else "") if minutes else "UTC"
    return shift if named == "UTC" else f"{named} ({shift})"


def city(zone: tzinfo) -> str:
    """The zone by its city alone."""
    name = getattr(zone, "key", None) or str(zone)
    return CITIES.get(name) or name.rsplit("/", 1)[-1].replace("_", " ")
