"""Ids: UUID version 7, time-ordered, made by a library."""

from uuid import UUID

import uuid_utils.compat


def new_id() -> UUID:
    """A new UUIDv7. Ids made later sort later, to the millisecond, within the clocks' agreement."""
    return uuid_utils.compat.uuid7()
