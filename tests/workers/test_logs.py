"""The lines of a worker's log."""

import json
import logging

from workers.logs import JsonLines


def line(**extra):
    record = logging.makeLogRecord({"name": "a", "levelno": 20, "levelname": "INFO", "msg": "job.ended", **extra})
    return json.loads(JsonLines().format(record))


def test_a_line_has_its_instant_level_event_and_fields():
    told = line(job="x", seconds=1.5)
    assert told.pop("at")
    assert told == {"level": "info", "event": "job.ended", "logger": "a", "job": "x", "seconds": 1.5}


def test_no_value_costs_the_line():
    told = line(half="\ud800", large=2**70, odd=object, inner={2**70: {"\udcff"}})
    assert told["event"] == "job.ended"
    assert told["large"] == 2**70
