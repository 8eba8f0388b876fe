"""Wrong keys and passwords are counted by whom they come from or go for: so many a minute, in each web process.

What is counted ("whom") is a name of the caller's: an address, a user's name, both together.
"""

import hashlib
import ipaddress
import time

from django.core.cache import cache
from django.http import HttpRequest

FAILURES_A_MINUTE = 5
# For one user name, over all addresses: more than a person mistypes, too few to guess with many addresses.
NAME_FAILURES_A_MINUTE = 20
WINDOW = 60
REMEMBERED = 3600
REMEMBERED_PAIR = 30 * 86400


def address_of(request: HttpRequest) -> str:
    """Whom failures are counted against: the peer's address, for IPv6 its /64 network."""
    address = request.META.get("REMOTE_ADDR") or "local"
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address[:64]
    if parsed.version == 4:
        return str(parsed)
    if parsed.ipv4_mapped is not None:  # how a socket of both families names an IPv4 peer: not one network for all
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, 64), strict=False).network_address)


def name_of(name: str) -> str:
    """A user's name as it is counted: short, and unreadable in a cache that others can look into."""
    return "name-" + hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def count(whom: str) -> int:
    """Count a failure; answers how many there are in this minute."""
    cache.add(f"turno:until:{whom}", time.time() + WINDOW, WINDOW)
    cache.add(f"turno:failures:{whom}", 0, WINDOW)
    try:
        return cache.incr(f"turno:failures:{whom}")
    except ValueError:  # the minute ended between the two lines
        return 1


def give_back(whom: str) -> None:
    """A try that was counted beforehand was no failure."""
    try:
        cache.decr(f"turno:failures:{whom}")
    except ValueError:  # its minute is over
        return


def wait(whom: str, most: int) -> int:
    """Seconds until something of theirs is compared again; 0 when it is."""
    if cache.get(f"turno:failures:{whom}", 0) < most:
        return 0
    return max(1, round(cache.get(f"turno:until:{whom}", 0) - time.time()))


def remember(whom: str, seconds: int) -> None:
    """Somebody right came from there: for so long, wrong neighbours do not shut them out."""
    cache.set(f"turno:known:{whom}", True, seconds)


def remembered(whom: str) -> bool:
    """Whether somebody right came from there lately."""
    return bool(cache.get(f"turno:known:{whom}"))
