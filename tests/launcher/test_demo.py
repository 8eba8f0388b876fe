"""The demonstration load, against answers as the API gives them."""

from collections import Counter
from random import Random
from urllib.parse import parse_qs, urlsplit

import pytest

from turno.launcher import demo
from turno.launcher.demo import Demo
from turno.launcher.errors import LauncherError
from turno.launcher.say import Console


class Answers:
    """An installation that runs half of what waits between two looks, and is away once."""

    def __init__(self) -> None:
        self.sent: list[dict] = []
        self.looks = 0

    def __call__(self, address, path, *, key="", body=None, timeout=5.0):
        assert (address, key) == ("http://x", "k")
        if body is not None:
            self.sent += [{**job, "state": "Enqueued", "executions": 0} for job in body["jobs"]]
            return 200, {"items": []}
        query = parse_qs(urlsplit(path).query)
        start = int(query.get("cursor", ["0"])[0])
        if start == 0:
            self.looks += 1
            if self.looks == 2:
                raise ConnectionError("away")
            waiting = [job for job in self.sent if job["state"] == "Enqueued"]
            for job in waiting[: max(1, len(waiting) // 2)]:
                job["state"] = "Succeeded"
        page = [job for job in self.sent if query["tag"][0] in job["tags"]][start : start + 200]
        return 200, {"items": page, "next_cursor": str(start + 200) if len(page) == 200 else None}


@pytest.fixture
def answers(monkeypatch):
    found = Answers()
    monkeypatch.setattr(demo, "request", found)
    monkeypatch.setattr(demo.time, "sleep", lambda _seconds: None)
    return found


def test_every_job_is_sent_once_over_all_four_samples_and_followed_to_its_end(answers):
    run = Demo("http://x", "k", Console())
    run.send(601, Random(1))
    assert Counter(job["type"] for job in answers.sent).most_common()[-1][1] == 150
    assert run.follow(601) == Counter(Succeeded=601)


def test_a_refusal_is_said_in_the_words_of_the_api(monkeypatch):
    monkeypatch.setattr(demo, "request", lambda *_args, **_kw: (401, {"detail": "Send the access key."}))
    with pytest.raises(LauncherError, match=r"401 Send the access key\."):
        Demo("http://x", "k", Console()).send(1, Random(1))


def test_a_job_that_ran_and_waits_again_counts_as_waiting_for_another_attempt():
    assert Demo.told(Counter(Succeeded=3, Retry=2)) == "3 succeeded, 2 waiting for another attempt"
    assert Demo.told(Counter()) == "0"


@pytest.mark.parametrize("arguments", [["0"], ["x"], ["-5"], ["20001"], ["1", "2"]])
def test_a_number_that_makes_no_sense_gives_the_usage(arguments, capsys):
    assert demo.main(arguments) == 1
    assert "Usage: scripts/demo.sh" in capsys.readouterr().err
