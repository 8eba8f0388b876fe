"""The lines of a worker's log."""

import io
import json
import logging
import select
import threading

import pytest

from workers.logs import JsonLines, Lines


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


class Pipe(io.StringIO):
    """Keeps what was written at once."""

    def __init__(self):
        super().__init__()
        self.pieces = []

    def write(self, text):
        self.pieces.append(text)
        return super().write(text)


@pytest.fixture
def pipe():
    return Pipe()


@pytest.fixture
def written(pipe):
    """A logger that writes into the pipe."""
    handler = Lines(pipe)
    handler.setFormatter(JsonLines())
    logger = logging.Logger("test.lines")
    logger.addHandler(handler)
    return logger


def events(pipe):
    return [json.loads(line)["event"] for line in pipe.getvalue().splitlines()]


def test_a_line_is_written_at_once(pipe, written):
    written.info("one")
    assert events(pipe) == ["one"]


def test_lines_that_belong_together_are_written_in_few_pieces_of_whole_lines(pipe, written):
    with Lines.together():
        for n in range(100):
            written.info("line.%d", n)
        assert events(pipe) == []
    assert events(pipe) == [f"line.{n}" for n in range(100)]
    assert len(pipe.pieces) < 10
    assert all(piece.endswith("\n") and len(piece) <= select.PIPE_BUF for piece in pipe.pieces)
    written.info("after")
    assert events(pipe)[-1] == "after"


def test_what_was_logged_before_an_error_is_written(pipe, written):
    def fails():
        with Lines.together():
            written.info("before")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert events(pipe) == ["before"]


def test_other_threads_do_not_wait_for_a_block(pipe, written):
    with Lines.together():
        written.info("mine")
        thread = threading.Thread(target=written.info, args=("theirs",))
        thread.start()
        thread.join()
        assert events(pipe) == ["theirs"]
    assert events(pipe) == ["theirs", "mine"]


def test_a_line_that_cannot_be_formatted_costs_nobody_else_a_line(pipe, written, monkeypatch):
    monkeypatch.setattr(logging, "raiseExceptions", False)
    with Lines.together():
        written.info("bad %d", "x")
        written.info("good")
    assert events(pipe) == ["good"]


def test_a_closed_stream_raises_nothing(pipe, written):
    pipe.close()
    written.info("nobody hears it")
    with Lines.together():
        written.info("nor this")
