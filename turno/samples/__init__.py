"""Four handlers that do real small work, for demonstrations and as examples; `handlers` has them all.

Importing this package needs the standard library only: `demo_payload` makes up payloads for them.
"""

from turno.samples.demo import DEMO_TYPES, demo_payload

__all__ = ["DEMO_TYPES", "demo_payload"]
