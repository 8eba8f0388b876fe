"""What the fields of a job may hold, once for every door: tables, settings, declarations, requests and the API."""

import re

TYPE_LENGTH, QUEUE_LENGTH = 200, 100
LETTERS = "a-z0-9._-"  # of names, inside the brackets of a pattern
TYPE_PATTERN = rf"^[{LETTERS}]{{1,{TYPE_LENGTH}}}$"
QUEUE_PATTERN = rf"^[{LETTERS}]{{1,{QUEUE_LENGTH}}}$"
RECURRING_PATTERN = r"^[a-z0-9._-]{1,100}$"  # the name of a recurring job
_TYPE, _QUEUE = re.compile(TYPE_PATTERN), re.compile(QUEUE_PATTERN)
# Queues of the broker for what failed: the letters of jobs, and what came by a queue and is no message of ours.
DEAD_LETTER = "dead-letter"
ERROR_SUFFIX = "_error"

PRIORITIES = (-10, 10)
QUEUE_SLOTS = (0, 1000)  # of a worker
ATTEMPTS = (1, 100)
CONCURRENCY = (1, 1000)  # jobs of a key, or of a type, that run at once
STARTS = (1, 1_000_000)  # of a rate's window
KEY_LENGTH = 200
ORIGIN_LENGTH = 200
TAG_LENGTH = 100
TAGS = 20
PARENTS = 100
PARENT_POLICIES = ("cancel", "run")  # what a parent that did not succeed does to its child
REASON_LENGTH = 500
LARGEST_BATCH = 1000
# In seconds.
LONGEST_DELAY = 10 * 366 * 86400
LONGEST_TIMEOUT = 30 * 86400


def is_type(name: object) -> bool:
    """Whether a job type may be called this."""
    return isinstance(name, str) and _TYPE.fullmatch(name) is not None


def is_queue(name: object) -> bool:
    """Whether a queue may be called this."""
    return (
        isinstance(name, str)
        and _QUEUE.fullmatch(name) is not None
        and name != DEAD_LETTER
        and not name.endswith(ERROR_SUFFIX)
    )
