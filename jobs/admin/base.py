"""The ground that every table stands on in the admin: read, filter by an index, act by a function, write nothing."""

from collections.abc import Callable, Sequence
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.admin.options import ActionLocation
from django.core.exceptions import ValidationError
from django.db import models
from django.http import HttpRequest, HttpResponse
from django.utils.functional import Promise
from django.utils.translation import gettext as _

from jobs.admin.columns import shown_instant, shown_json, shown_text
from jobs.admin.listing import PER_PAGE, Slice
from jobs.errors import Refused
from jobs.queries.payloadtext import masked

LONG = 80  # characters from which a text is shown in a block of its own


class ReadOnly(admin.ModelAdmin):
    """Nothing is added, changed or deleted here: what may be done is an action, by the same function as the API's."""

    list_per_page = PER_PAGE
    list_max_show_all = 0
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    sortable_by: Sequence[str] = ()
    ordering: Sequence[str] = ("-pk",)
    list_select_related: Any = ()
    extras: Sequence[str] = ()  # methods shown in the form above the columns
    lookups: frozenset[str] = frozenset()  # parameters that our own links use, each with an index
    actions: Any = ()

    def __init__(self, model: type[models.Model], admin_site: admin.AdminSite) -> None:
        super().__init__(model, admin_site)
        self._shown = [*self.extras, *(_stand_in(field) for field in self.opts.fields)]

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[Slice]:
        """A list that is never counted."""
        return Slice

    def get_ordering(self, request: HttpRequest) -> Sequence[str]:
        """The order of an index."""
        return self.ordering

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        """Only our own filters: Django would let the address filter by any column."""
        own = {filter_.parameter_name for filter_ in self.list_filter if hasattr(filter_, "parameter_name")}
        return lookup in self.lookups | own

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Rows are made by the product."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """State belongs to the transitions."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Deleting is an action where it is allowed at all."""
        return False

    def has_operate_permission(self, request: HttpRequest) -> bool:
        """Whoever may change rows of this model may act on them."""
        return request.user.has_perm(f"{self.opts.app_label}.change_{self.opts.model_name}")

    def has_erase_permission(self, request: HttpRequest) -> bool:
        """Whoever may delete rows of this model."""
        return request.user.has_perm(f"{self.opts.app_label}.delete_{self.opts.model_name}")

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        """Every column, in the table's order, by readable stand-ins where the value needs one."""
        return list(self._shown)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        """All of them."""
        return list(self._shown)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        """Columns go by their names in the table, without the hints that are written for developers."""
        names = [field.name for field in self.opts.fields]
        kwargs["labels"] = {name: name for name in names}
        kwargs["help_texts"] = dict.fromkeys(names, "")
        return super().get_form(request, obj, change, **kwargs)

    def get_action_choices(
        self,
        request: HttpRequest,
        default_choices: list[tuple[str, str]] | None = None,
        action_location: ActionLocation = ActionLocation.CHANGE_LIST,
    ) -> list[tuple[str, str]]:
        """The acts, under words of ours: Django's are not translated."""
        choices = super().get_action_choices(request, default_choices, action_location)
        return [("", str(_("Choose an act"))) if value == "" else (value, label) for value, label in choices]

    def response_action(self, request: HttpRequest, queryset: Any, **kwargs: Any) -> HttpResponse | None:
        """Acts on what was selected by hand, at most a page; what is no id of this table is left out."""
        given = request.POST.copy()
        given["select_across"] = "0"
        name = ACTION_CHECKBOX_NAME
        given.setlist(name, [pk for pk in given.getlist(name)[:PER_PAGE] if self._is_pk(pk)])
        request.POST = given
        return super().response_action(request, queryset, **kwargs)

    def _is_pk(self, text: str) -> bool:
        try:
            self.opts.pk.to_python(text)
        except (ValidationError, ValueError):
            return False
        return True

    def each(
        self,
        request: HttpRequest,
        rows: Any,
        act: Callable[[Any], Any],
        said: Callable[[int], str],
        logged: str,
    ) -> None:
        """Do `act` to each row, say how many it was done to (`said`) and why not to the others; log it by row."""
        done: list[Any] = []
        refused: dict[str, int] = {}
        for row in list(rows[:PER_PAGE]):
            try:
                act(row)
                done.append(row)
            except Refused as error:
                refused[str(error.detail)] = refused.get(str(error.detail), 0) + 1
        if done:
            self._log(request, done, logged)
        self.message_user(request, said(len(done)), messages.SUCCESS if done else messages.WARNING)
        for reason, count in refused.items():
            self.message_user(request, f"{count}: {reason}", messages.WARNING)

    def _log(self, request: HttpRequest, rows: list[Any], logged: str) -> None:
        LogEntry.objects.log_actions(request.user.pk, rows, CHANGE, logged)


def _stand_in(field: models.Field) -> Any:
    """What shows a column in the form: its name, or a function for what the admin would show unreadably."""
    if isinstance(field, models.ForeignKey):
        return field.name
    shown: Callable[[Any], Any] | None = None
    if isinstance(field, models.DateTimeField):
        shown = shown_instant
    elif isinstance(field, models.JSONField):
        shown = shown_json
    elif isinstance(field, models.BooleanField):
        shown = _truth
    elif isinstance(field, models.TextField) and not field.primary_key:
        shown = _text
    if shown is None:
        return field.name
    return _shown(field.name, shown, of_a_type=field.name == "payload")


def _truth(value: bool) -> str:
    return "true" if value else "false"


def _text(value: str) -> Any:
    return shown_text(value) if len(value) > LONG or "\n" in value else value or "-"


def _shown(name: str, shown: Callable[[Any], Any], *, of_a_type: bool = False) -> Callable[[Any], Any]:
    @admin.display(description=name)
    def column(row: Any) -> Any:
        value = masked(row.type, getattr(row, name)) if of_a_type else getattr(row, name)
        return "-" if value is None else shown(value)

    column.__name__ = name
    return column


def named(model: type[models.Model], one: str | Promise, many: str | Promise) -> None:
    """The table's name for people. Not in the model: it would ask for a migration, and for no change of the table."""
    model._meta.verbose_name = one
    model._meta.verbose_name_plural = many
