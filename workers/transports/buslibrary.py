"""Where azure-servicebus 7.15 needs a hand, and what of its own insides we touch for that; without them all works, less
well. Nothing here imports it."""

import logging
from typing import Any

from django.utils.translation import gettext as _

from jobs.text import clean

log = logging.getLogger(__name__)
LONGEST_REASON = 1024  # characters
UNAUTHORIZED = ("401", "403")
AWAITS_OUTCOME = "_await_settlement_outcome"
MAKES_HANDLER = "_create_handler"


def hasten(receiver: Any) -> None:
    """Let settling a message wait for no answer.

    The library waits by reading, and who reads while another call does waits for a frame that the other has got: both
    then stand still, message by message. A settlement that is lost is a message that comes twice.
    """
    if hasattr(receiver, AWAITS_OUTCOME):
        setattr(receiver, AWAITS_OUTCOME, False)


def told_of(error: Exception) -> str:
    """What people are told of an error of the library, in one line.

    Of a token that the service did not take it hides the service's own words, which say what is wrong with the key."""
    cause = getattr(error, "inner_exception", None)
    said = getattr(cause, "status_description", None)
    if not said:
        return clean(error, LONGEST_REASON, one_line=True)
    said = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
    if str(getattr(cause, "status_code", "")) in UNAUTHORIZED:
        said = _("the key of the connection string is refused: %(why)s") % {"why": said}
    return clean(said, LONGEST_REASON, one_line=True)


class Connections:
    """The connections that a receiver or a sender makes: of one that the other side ended, or that never came about,
    the library leaves the socket open until the garbage is collected."""

    def __init__(self, link: Any) -> None:
        self._made: list[Any] = []
        make = getattr(link, MAKES_HANDLER, None)
        if make is not None:

            def make_and_watch(auth: Any) -> None:
                make(auth)
                self._watch(link._handler)

            setattr(link, MAKES_HANDLER, make_and_watch)

    def _watch(self, handler: Any) -> None:
        opening = handler.open_async

        async def open_and_remember(**options: Any) -> None:
            try:
                await opening(**options)
            finally:
                self._made = [*filter(_is_open, self._made), handler._connection]

        handler.open_async = open_and_remember

    @property
    def open(self) -> bool:
        """Whether one of them is still connected."""
        return any(map(_is_open, self._made))

    async def close(self) -> None:
        """Close the sockets that are left open. Never raises."""
        made, self._made = self._made, []
        for connection in filter(_is_open, made):
            try:
                await connection._transport.close()
            except Exception:
                log.debug("servicebus.not_closed", exc_info=True)


def _is_open(connection: Any) -> bool:
    return getattr(getattr(connection, "_transport", None), "writer", None) is not None
