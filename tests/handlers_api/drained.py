"""Jobs of new types for the tests of `drain`."""

from turno.handlers import job_type
from turno.jobs import enqueue
from turno.testing import drain


def declare(name, handler, **options):
    """A job type, forgotten after the test; gives its name."""
    job_type(name, **options)(handler)
    return name


def run_one(handler, payload=None, **options):
    """The run of the one job of a new type, whatever comes of it."""
    enqueue(declare("drain.one", handler, **options), payload)
    [run] = drain(with_failures="record")
    return run
