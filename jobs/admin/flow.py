"""Flow control in the admin: what waits for what, what is paused, open or limited."""

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from jobs.admin.base import ReadOnly, named
from jobs.admin.columns import instant, job_link, labelled, short
from jobs.admin.site import site
from jobs.models import (
    Circuit,
    ConcurrencyKey,
    ConcurrencySlot,
    Counter,
    JobDependency,
    KnownType,
    Pause,
    Queue,
    Rate,
    UnservedType,
)

named(JobDependency, _("dependency"), _("dependencies"))
named(ConcurrencyKey, _("concurrency key"), _("concurrency keys"))
named(ConcurrencySlot, _("concurrency slot"), _("concurrency slots"))
named(Queue, _("queue"), _("queues"))
named(Pause, _("pause"), _("pauses"))
named(Circuit, _("breaker"), _("breakers"))
named(Rate, _("rate"), _("rates"))
named(KnownType, _("job type"), _("job types"))
named(Counter, _("counter"), _("counters"))
named(UnservedType, _("unserved type"), _("unserved types"))


@admin.register(JobDependency, site=site)
class DependencyAdmin(ReadOnly):
    """Which job waits for which."""

    list_display = ("id", "child_", "parent_", "policy_")
    child_ = job_link("child_id", _("Child"))
    parent_ = job_link("parent_id", _("Parent"))
    policy_ = labelled("policy", _("Policy"))


@admin.register(ConcurrencyKey, site=site)
class KeyAdmin(ReadOnly):
    """Keys in use."""

    list_display = ("id", "kind_", "value_", "created")
    kind_ = labelled("kind", _("Kind"))
    value_ = short("value", _("Value"))
    created = instant("created_at", _("Created"))


@admin.register(ConcurrencySlot, site=site)
class SlotAdmin(ReadOnly):
    """Which job holds which slot of a key."""

    list_display = ("id", "key_", "slot_", "job_", "taken")
    key_ = labelled("key_id", _("Key"))
    slot_ = labelled("slot", _("Slot"))
    job_ = job_link("job_id", _("Job"))
    taken = instant("taken_at", _("Since"))


@admin.register(Queue, site=site)
class QueueAdmin(ReadOnly):
    """Queues with settings of their own."""

    list_display = ("name", "slots_", "priority", "created")
    ordering = ("name",)
    slots_ = labelled("slots", _("Slots"))
    priority = labelled("default_priority", _("Priority"))
    created = instant("created_at", _("Created"))


@admin.register(Pause, site=site)
class PauseAdmin(ReadOnly):
    """What is paused."""

    list_display = ("id", "scope_", "value_", "reason_", "who", "created", "until_")
    scope_ = labelled("scope", _("Scope"))
    value_ = short("value", _("Value"))
    reason_ = short("reason", _("Reason"))
    who = short("paused_by", _("By"))
    created = instant("created_at", _("Since"))
    until_ = instant("until", _("Until"))


@admin.register(Circuit, site=site)
class CircuitAdmin(ReadOnly):
    """Breakers by type."""

    list_display = ("type", "state_", "opened", "retry")
    ordering = ("type",)
    state_ = labelled("state", _("State"))
    opened = instant("opened_at", _("Since"))
    retry = instant("retry_at", _("Next"))


@admin.register(Rate, site=site)
class RateAdmin(ReadOnly):
    """Limits by type and window."""

    list_display = ("type", "allowed_", "window_")
    ordering = ("type",)
    allowed_ = labelled("allowed", _("Allowed"))
    window_ = labelled("window", _("Window, in seconds"))


@admin.register(Counter, site=site)
class CounterAdmin(ReadOnly):
    """What is counted over the whole life of the database."""

    list_display = ("name", "value_")
    ordering = ("name",)
    value_ = labelled("value", _("Value"))


@admin.register(KnownType, site=site)
class TypeAdmin(ReadOnly):
    """Types that were ever seen."""

    list_display = ("name", "max_running_", "first", "served")
    ordering = ("name",)
    max_running_ = labelled("max_running", _("At once"))
    first = instant("first_seen_at", _("First seen"))
    served = instant("last_served_at", _("Last served"))


@admin.register(UnservedType, site=site)
class UnservedAdmin(ReadOnly):
    """Types that jobs wait for and no live worker of their queue has."""

    list_display = ("type", "queue_", "since_", "seen")
    ordering = ("type", "queue")
    queue_ = labelled("queue", _("Queue"))
    since_ = instant("since", _("Since"))
    seen = instant("seen_at", _("Last looked at"))
