"""Handlers that were asked to stop and run on: shown to people, with the place where each one is."""

import logging
import sys
import sysconfig
from pathlib import Path
from types import FrameType
from uuid import UUID

from django.utils.translation import gettext as _

from workers.clock import boottime
from workers.leases import Held, LeaseBook

log = logging.getLogger(__name__)
_PATHS = sysconfig.get_paths()
NOT_THEIRS = (str(Path(__file__).parent), _PATHS["stdlib"], _PATHS["purelib"], _PATHS["platlib"], "<")


class StuckHandlers:
    """Looks them up in the lease book; each is said once in the log, and in the worker's row for as long as it lasts.

    Such a handler keeps its job Processing, its slot and its lease until it ends or its process is killed.
    """

    def __init__(self, book: LeaseBook) -> None:
        self._book = book
        self._said: set[UUID] = set()

    def problems(self) -> list[dict[str, str]]:
        """One entry a handler: `handler` (its type), `job`, `error` (a sentence), `at` (file:line function, or "")."""
        stuck = self._book.stuck(boottime())
        found = [_problem(held) for held in stuck]
        for held, problem in zip(stuck, found, strict=True):
            if held.claim.dispatch_id not in self._said:
                about = {"job": problem["job"], "type": problem["handler"], "asked": str(held.interrupt)}
                log.warning("handler.stuck", extra=about | {"place": problem["at"]})
        self._said = {held.claim.dispatch_id for held in stuck}
        return found


def _problem(held: Held) -> dict[str, str]:
    why = {"cancelled": _("cancelled"), "timeout": _("out of time"), "shutdown": _("shutdown"), "lost": _("lease lost")}
    said = why[str(held.interrupt)]
    return {
        "handler": held.claim.type,
        "job": str(held.claim.id),
        "error": _("The handler was asked to stop (%(why)s) and runs on.") % {"why": said},
        "at": _place(held.thread),
    }


def _place(thread: int | None) -> str:
    """Where a thread is: its innermost frame that is neither ours nor Python's own, else the innermost of all."""
    frame = sys._current_frames().get(thread) if thread is not None else None
    frames: list[FrameType] = []
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    theirs = [f for f in frames if not f.f_code.co_filename.startswith(NOT_THEIRS)]
    for found in (theirs or frames)[:1]:
        return f"{Path(found.f_code.co_filename).name}:{found.f_lineno} {found.f_code.co_name}"
    return ""
