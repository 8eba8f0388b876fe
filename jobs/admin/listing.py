"""Lists that read one page and no more: never a count, never an order without an index, never a filter without one."""

from typing import Any

from django.contrib.admin.views.main import PAGE_VAR, ChangeList
from django.http import HttpRequest
from django.utils.text import capfirst

PER_PAGE = 50
PAGES = 200  # further on an offset gets slow; a search leads there


class Slice(ChangeList):
    """A page of the list, in the one order that the model's admin names; how many follow is not known."""

    page_num: int
    newer_link: str | None = None
    older_link: str | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.title = capfirst(self.opts.verbose_name_plural)

    def get_ordering(self, request: HttpRequest, queryset: Any) -> list[str]:
        """The admin's own order: others would sort the table."""
        return list(self.model_admin.get_ordering(request))

    def get_ordering_field_columns(self) -> dict[int, str]:
        """No column can be sorted by."""
        return {}

    def get_results(self, request: HttpRequest) -> None:
        """Reads one row more than the page holds, which tells whether another page follows."""
        self.page_num = min(max(self.page_num, 1), PAGES)
        start = (self.page_num - 1) * self.list_per_page
        found = list(self.queryset[start : start + self.list_per_page + 1])
        self.result_list = found[: self.list_per_page]
        self.result_count = len(self.result_list)
        self.full_result_count = None
        self.show_full_result_count = False
        self.show_admin_actions = bool(self.result_list)
        self.can_show_all = self.multi_page = self.show_all = False
        self.paginator = None
        if self.page_num > 1:
            self.newer_link = self.get_query_string({PAGE_VAR: self.page_num - 1})
        if len(found) > self.list_per_page and self.page_num < PAGES:
            self.older_link = self.get_query_string({PAGE_VAR: self.page_num + 1})
