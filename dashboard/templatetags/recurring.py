"""Recurring jobs: instants to come."""

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from dashboard.schedulewords import Coming
from jobs import wording

register = template.Library()


@register.simple_tag
def soon(value: Coming) -> SafeString:
    """How far away it is, as a running clock where it is less than an hour; the exact instant in its title."""
    exact, iso = wording.exact(value.at), value.at.isoformat(timespec="seconds")
    if value.late is not None:
        before, _mark, after = _("late by %(span)s").partition("%(span)s")
        clock = wording.clock(value.late)
        return format_html(
            '{}<time data-since="{}" datetime="{}" title="{}">{}</time>{}', before, value.late, iso, exact, clock, after
        )
    if value.left is None:
        return format_html('<time datetime="{}" title="{}">{}</time>', iso, exact, value.inside)
    before, _mark, after = _("in %(span)s").partition("%(span)s")
    clock = wording.clock(value.left)
    return format_html(
        '{}<time data-until="{}" datetime="{}" title="{}">{}</time>{}', before, value.left, iso, exact, clock, after
    )
