"""Users and groups, which only superusers see: whoever may edit users may make themselves anything."""

from typing import Any

from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from jobs.admin.base import ReadOnly
from jobs.admin.columns import instant, labelled, short
from jobs.admin.listing import Slice
from jobs.admin.site import site


class ForSuperusers(admin.ModelAdmin):
    """All rights for superusers, none for others."""

    show_full_result_count = False
    sortable_by = ()

    def _is_superuser(self, request: HttpRequest) -> bool:
        return bool(request.user.is_superuser)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[Slice]:
        """The same lists as elsewhere."""
        return Slice

    def has_module_permission(self, request: HttpRequest) -> bool:
        """See the class."""
        return self._is_superuser(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """See the class."""
        return self._is_superuser(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """See the class."""
        return self._is_superuser(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """See the class."""
        return self._is_superuser(request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """See the class."""
        return self._is_superuser(request)


@admin.register(User, site=site)
class PeopleAdmin(ForSuperusers, UserAdmin):
    """Users: staff status operates, the others look; superusers may everything."""

    list_display = ("username", "email", "is_active", "is_staff", "is_superuser", "seen")
    list_filter = ("is_staff", "is_superuser", "is_active")
    seen = instant("last_login", _("Last sign-in"))


@admin.register(Group, site=site)
class GroupsAdmin(ForSuperusers, GroupAdmin):
    """Groups of users with the same rights."""


@admin.register(LogEntry, site=site)
class LogEntryAdmin(ReadOnly):
    """What was done in the administration."""

    list_display = ("id", "when", "who", "what", "object")
    when = instant("action_time", _("Instant"))
    who = labelled("user", _("By"))
    object = short("object_repr", _("Object"))
    list_select_related = ("user",)

    @admin.display(description=_("Act"))
    def what(self, entry: LogEntry) -> str:
        """In words."""
        return entry.get_change_message() or entry.get_action_flag_display()

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Superusers."""
        return bool(request.user.is_superuser)
