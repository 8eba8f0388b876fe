"""JSON out. The common case is orjson's; whole numbers over 64 bits go through Python's own writer."""

import json
from decimal import Decimal
from typing import Any

import orjson
from django.http import HttpRequest
from ninja.renderers import BaseRenderer
from ninja.responses import NinjaJSONEncoder

# jsonb writes 1e308 as a whole number of 309 digits. Read as one it would no longer equal what was sent; above this,
# a number that is exactly a double's shortest text is written like that again.
EXPONENT_FROM = 10**100


def _number(value: int) -> int | float:
    if abs(value) < EXPONENT_FROM:
        return value
    try:
        short = float(value)
    except OverflowError:
        return value
    return short if Decimal(repr(short)) == value else value


def _numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _numbers(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_numbers(item) for item in value]
    return _number(value) if isinstance(value, int) and not isinstance(value, bool) else value


class Renderer(BaseRenderer):
    """Instants in UTC with a Z; what orjson does not know is left to Python's writer."""

    media_type = "application/json"

    def render(self, request: HttpRequest, data: Any, *, response_status: int) -> Any:
        try:
            return orjson.dumps(data, option=orjson.OPT_UTC_Z)
        except TypeError:
            return json.dumps(_numbers(data), cls=NinjaJSONEncoder, ensure_ascii=False).encode()
