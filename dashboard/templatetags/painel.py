"""The Painel's figures and sentences."""

from collections.abc import Collection, Sequence
from datetime import datetime

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from dashboard.charts import Chart
from jobs import wording

register = template.Library()
NAMED = 5  # names that a sentence bears; of the others it says how many they are


@register.simple_tag
def figure(text: str) -> SafeString:
    """A number large and its unit small: 1,24 mi, 2,8 s, 6 min 42 s."""
    value, _space, unit = text.partition(" ")
    return format_html("{}<small> {}</small>", value, unit) if unit else format_html("{}", value)


@register.simple_tag
def estimated_figure(value: int, estimated: Collection[str], *names: str) -> SafeString:
    """A count, with its tilde where one of its parts comes from statistics."""
    return figure(wording.count(value, any(name in estimated for name in names)))


@register.filter
def share(value: float) -> str:
    """A share in per cent: 98,9%."""
    return f"{wording.number(value, 1)}%"


@register.filter
def minute(value: datetime) -> str:
    """The minute in the viewer's zone: 13:47."""
    return f"{timezone.localtime(value):%H:%M}"


@register.filter
def scope(value: str) -> str:
    """What kind of thing is paused."""
    return {"queue": _("Queue"), "type": _("Type"), "tag": _("Tag"), "key": _("Key")}.get(value, value)


@register.filter
def broker(transport: str) -> str:
    """A transport's broker by its name."""
    return {"rabbitmq": "RabbitMQ", "servicebus": "Azure Service Bus"}.get(transport, _("The broker"))


@register.filter
def named(names: Sequence[str]) -> str:
    """Names in a sentence: web, worker-1, worker-2."""
    shown = ", ".join(names[:NAMED])
    more = len(names) - NAMED
    return _("%(names)s and %(n)s more") % {"names": shown, "n": wording.number(more)} if more > 0 else shown


@register.filter
def severity_mark(severity: str) -> str:
    """The mark of a concern of this severity."""
    return "paused" if severity == "warning" else "failure"


@register.simple_tag
def rhythm_sentence(chart: Chart) -> str:
    """What the drawing says: how many, how many failed, when most."""
    if not chart.total and not chart.retried:
        return _("No runs in the last hour")
    said = ngettext("%(n)s run in 1 h", "%(n)s runs in 1 h", chart.total) % {"n": wording.count(chart.total)}
    said += ", " + ngettext("%(n)s failed", "%(n)s failed", chart.failed) % {"n": wording.count(chart.failed)}
    if chart.retried:
        again = ngettext("%(n)s attempt repeated", "%(n)s attempts repeated", chart.retried)
        said += ", " + again % {"n": wording.count(chart.retried)}
    if chart.peak_at is not None:
        said += "; " + _("peak of %(n)s at %(time)s") % {"n": wording.count(chart.peak), "time": minute(chart.peak_at)}
    return said
