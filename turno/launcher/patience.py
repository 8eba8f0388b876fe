"""How long each process may take to stop before it is killed."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # what stops a start is needed before the packages that reading the settings needs are installed
    from turno.launcher.config import Config

WEB = 10.0  # seconds
DATABASE = 30.0
SERVERS = 40.0  # Redis, RabbitMQ and its port mapper, one after the other
# The defaults of worker.shutdown_timeout and worker.kill_grace, and what comes on top of both: the worker's supervisor
# kills what does not end, and gives its jobs back.
SHUTDOWN_TIMEOUT, KILL_GRACE = 30.0, 1.0
MARGIN = 45.0
UNKNOWN = SHUTDOWN_TIMEOUT + KILL_GRACE + MARGIN  # for one of which a note says nothing


def worker(config: "Config") -> float:
    """A worker with its supervisor."""
    timeout = seconds(config.get("worker", "shutdown_timeout"), SHUTDOWN_TIMEOUT)
    return timeout + seconds(config.get("worker", "kill_grace"), KILL_GRACE) + MARGIN


def everything(config: "Config", *, servers: bool = False) -> float:
    """Web, then the workers together, then the database, and before it the other servers where there are any."""
    return WEB + worker(config) + DATABASE + (SERVERS if servers else 0.0)


def seconds(text: str, default: float) -> float:
    """A setting's duration as far as it can be read here: "45s", "2 min" or a number of seconds."""
    number = text.strip().rstrip("abcdefghijklmnopqrstuvwxyz ")
    units = {"": 1.0, "s": 1.0, "ms": 0.001, "min": 60.0, "m": 60.0, "h": 3600.0}
    try:
        return float(number) * units[text.strip()[len(number) :].strip()]
    except (ValueError, KeyError):
        return default
