"""What the servers of locks are told to do, and what their answers say.

All scripts answer with how many keys did as they were told, and then name the others alone, each by its number: a
client reads an answer item by item.
"""

import hashlib
from typing import Any

Failed = dict[int, bytes | None]  # by the number of a key, from 1: what it holds, where the script says that


class Script:
    """A script by its text and by the digest under which a server knows it. Its keys each have a value: ARGV[2..].

    `names_other`: of a key that did not do as it was told it says what that holds, after its number.
    """

    def __init__(self, text: str, *, names_other: bool = False) -> None:
        self.text = text
        self._names_other = names_other
        self.sha = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()

    def failed(self, count: int, answer: Any) -> Failed | None:
        """The keys that did not do as they were told, of `count`; None: this is no answer about so many keys.

        What an answer leaves unsaid is no success: it counts the ones, and names each of the others once.
        """
        if not isinstance(answer, list) or not answer:
            return None
        did, *said = answer
        numbers = said[::2] if self._names_other else said
        others = said[1::2] if self._names_other else [None] * len(said)
        known = all(isinstance(number, int) and 1 <= number <= count for number in numbers)
        told = len(others) == len(numbers) and all(other is None or isinstance(other, bytes) for other in others)
        if not known or not told:
            return None
        failed = dict(zip(numbers, others, strict=True))
        return failed if len(failed) == len(numbers) and did == count - len(failed) else None


# ARGV[1]: the TTL in ms. Of a key that was not taken: what it holds.
TAKE = Script(
    """
local found = {0}
for i, key in ipairs(KEYS) do
  local mine = ARGV[i + 1]
  if redis.call('SET', key, mine, 'NX', 'PX', ARGV[1]) then
    found[1] = found[1] + 1
  else
    local other = redis.call('GET', key)
    if other == mine then
      redis.call('PEXPIRE', key, ARGV[1])
      found[1] = found[1] + 1
    else
      found[#found + 1] = i
      found[#found + 1] = other
    end
  end
end
return found
""",
    names_other=True,
)
HELD = """
local done = {0}
for i, key in ipairs(KEYS) do
  if redis.call('GET', key) == ARGV[i + 1] and %s == 1 then
    done[1] = done[1] + 1
  else
    done[#done + 1] = i
  end
end
return done
"""
EXTEND = Script(HELD % "redis.call('PEXPIRE', key, ARGV[1])")
RELEASE = Script(HELD % "redis.call('DEL', key)")
