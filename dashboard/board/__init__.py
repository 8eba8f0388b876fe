"""The shift board: who works, what runs in each slot, for how long; in cards for a few workers, in cells for many."""

from dashboard.board.layout import DETAIL, MOSAIC, automatic, ended, rows
from dashboard.board.seen import parse
from dashboard.board.update import Picture, changes, whole

__all__ = ["DETAIL", "MOSAIC", "Picture", "automatic", "changes", "ended", "parse", "rows", "whole"]
