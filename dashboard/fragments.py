"""Parts of a page that refresh by themselves: rendered again, and answered with 204 when the browser has them already.

A region keeps the tag of what it shows (`X-Turno-Seen`) and sends it back. The tag is of the HTML without its running
clocks, which the browser moves by itself.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils import timezone

SEEN = "X-Turno-Seen"
AT = "X-Turno-At"
WHOLE = "X-Turno-Whole"  # the browser wants it all the same: it does not trust what it shows
# A clock's number and words; which clock it is, and its exact instant, count.
CLOCK = re.compile(r'data-(since|until|ago)="[^"]*"([^>]*)>[^<]*<')
# A form's token is masked anew in each rendering.
TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="[^"]*"')


def seen_tag(html: str) -> str:
    """What stands for this HTML: equal for two renderings that differ in running clocks only."""
    still = TOKEN.sub("", CLOCK.sub(r"data-\1\2><", html))
    return hashlib.blake2b(still.encode("utf-8", "surrogatepass"), digest_size=9).hexdigest()


def stamped(response: HttpResponse, tag: str) -> HttpResponse:
    """With the tag, and the instant of the data (milliseconds since 1970), which the page shows when it is cut off."""
    response[SEEN] = tag
    response[AT] = str(round(timezone.now().timestamp() * 1000))
    return response


def fragment(request: HttpRequest, template: str, context: Mapping[str, Any]) -> HttpResponse:
    """The fragment, or 204 when the browser said that it shows just this and did not ask for it whole."""
    html = render_to_string(template, dict(context), request=request)
    tag = seen_tag(html)
    if request.headers.get(SEEN) == tag and WHOLE not in request.headers:
        return stamped(HttpResponse(status=204), tag)
    return stamped(HttpResponse(html), tag)
