"""What the scripts say: handed to every page as data, so that their words go through gettext like all others.

`{name}` is filled in by the script; a list of two is [one, many], chosen by its `n`.
"""

from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext


def words() -> dict[str, Any]:
    """The words by key, in the language of the request."""
    return {
        "live": _("Live"),
        "paused": _("Paused at {time}"),
        "offline": _("Offline"),
        "pause": _("Pause live updates (key .)"),
        "resume": _("Resume live updates (key .)"),
        "lost": _("Live connection lost."),
        "data_from": _("Data from {time}."),
        "retry_in": _("Retrying in {seconds} s."),
        "retrying": _("Retrying…"),
        "polling": _("Live connection refused: numbers are fetched every 5 s."),
        "session_over": _("Your session has ended. The page stays readable; sign in to go on."),
        "close": _("Close"),
        "stop": _("Stop"),
        "stopping": _("Stopping…"),
        "back": _("Back"),
        "type_to_confirm": _("Type {text} to confirm"),
        "failed": _("That did not work."),
        "no_answer": _("The server does not answer. Nothing was changed that the page does not show; try again."),
        "not_signed_in": _("Your session has ended: sign in, and try again."),
        "copied": _("Copied"),
        "not_copied": _("The browser does not allow copying here: select the text and copy it."),
        "selected_jobs": [ngettext("{n} selected", "{n} selected", 1), ngettext("{n} selected", "{n} selected", 2)],
        "ago_now": _("just now"),
        "ago_s": _("{n} s ago"),
        "ago_min": _("{n} min ago"),
        "ago_h": _("{n} h ago"),
        "log_lines": [_("{n} line"), _("{n} lines")],
        "theme_auto": _("Theme: automatic"),
        "theme_light": _("Theme: light"),
        "theme_dark": _("Theme: dark"),
    }
