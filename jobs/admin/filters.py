"""Filters beside the lists. Their choices come from the code or from a small table, never from a large one."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.contrib.admin import SimpleListFilter
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from jobs.models import KnownType
from jobs.states import State

TYPES = 200


class StateFilter(SimpleListFilter):
    """Jobs in one state."""

    title = _("State")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """The six."""
        return [(str(state), str(state)) for state in State]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """The rows in the state that was chosen."""
        return queryset.filter(state=self.value()) if self.value() else queryset


class TypeFilter(SimpleListFilter):
    """Jobs of one type."""

    title = _("Type")
    parameter_name = "type"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """The types that were ever seen, as far as a list of them can be read."""
        names: Iterable[str] = KnownType.objects.order_by("name").values_list("name", flat=True)[:TYPES]
        return [(name, name) for name in names]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """The rows of the type that was chosen."""
        return queryset.filter(type=self.value()) if self.value() else queryset


class PendingFilter(SimpleListFilter):
    """Dead letters that wait for a person, or those that somebody has dealt with."""

    title = _("Resolution")
    parameter_name = "pending"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Two sides."""
        return [("1", _("Pending")), ("0", _("Resolved"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """The rows of the side that was chosen."""
        if self.value() in {"0", "1"}:
            return queryset.filter(resolved_at__isnull=self.value() == "1")
        return queryset


class OfJobFilter(SimpleListFilter):
    """`?job=<id>`: the rows of one job; where links lead, never a choice beside the list."""

    title = _("Job")
    parameter_name = "job"

    def has_output(self) -> bool:
        """Shown only while it holds, so that it can be seen and left."""
        return self.value() is not None

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """The one that the address names."""
        value = self.used_parameters.get(self.parameter_name)
        return [(value, value)] if value else []

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """The rows of that job; none for what is no id."""
        if self.value() is None:
            return queryset
        id_ = uuid_of(self.value())
        return queryset.none() if id_ is None else queryset.filter(job_id=id_)


def uuid_of(text: str) -> UUID | None:
    """The id that a text is, None for anything else."""
    try:
        return UUID(text)
    except ValueError:
        return None
