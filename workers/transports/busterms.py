"""What can go wrong with one queue or one message of Service Bus, and what can be sent, in Turno's own terms."""

from typing import Protocol

from django.utils.translation import gettext as _


class NoQueue(Exception):
    """The queue does not exist; the text says so to people."""

    def __init__(self, queue: str) -> None:
        words = _("The queue %(queue)s does not exist in Service Bus: an administrator has to create it.")
        super().__init__(words % {"queue": queue})


class Refused(Exception):
    """A fault of one queue alone: disabled, full, no right to it, a message too large."""


class LockLost(Exception):
    """The message is not ours any more; it comes again, or somebody has it."""


class Letter(Protocol):
    """What can be published."""

    def body(self) -> bytes: ...

    @property
    def id(self) -> str: ...
