"""Which dead letters: the one filter that the screen, the API and bulk acts share."""

from dataclasses import dataclass
from typing import Any

# Conditions on `d`, a dead letter. With the values bound by the client PostgreSQL drops those that ask nothing, and
# uses the index of the rest.
MATCHES = """
    (%(fingerprint)s::text IS NULL OR d.fingerprint = %(fingerprint)s::text)
    AND (%(type)s::text IS NULL OR d.type = %(type)s::text)
    AND (%(queue)s::text IS NULL OR d.queue = %(queue)s::text)
    AND (%(search)s::text IS NULL OR d.type ILIKE %(search)s::text OR d.error_type ILIKE %(search)s::text
         OR d.error_message ILIKE %(search)s::text)
"""


@dataclass(frozen=True, slots=True)
class LetterFilter:
    """Which letters; None asks nothing. `search` is found anywhere in the type, the error's class or its message."""

    fingerprint: str | None = None
    type: str | None = None
    queue: str | None = None
    search: str | None = None

    def params(self) -> dict[str, Any]:
        """The parameters of MATCHES. The searched text is compared, it is no pattern of the one who types it."""
        found = None
        if self.search:
            text = self.search.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")
            found = f"%{text}%"
        return {"fingerprint": self.fingerprint, "type": self.type, "queue": self.queue, "search": found}
