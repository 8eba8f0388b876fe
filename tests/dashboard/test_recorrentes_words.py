"""Instants as the recurring jobs' screens say them: the picture of a day, days and distances in words; cursors."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone, translation

from dashboard import schedulewords
from jobs import wording
from jobs.cron import parse
from jobs.errors import Invalid
from jobs.queries.schedulelist import ScheduleCursor
from jobs.schedules.firing import told


class TestThePictureOfADay:
    NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)

    def day(self, cron, zone="UTC", now=NOON):
        return schedulewords.next_day(parse(cron, zone), now)

    def test_few_instants_are_ticks_at_their_places_the_next_one_first(self):
        found = self.day("0 0 18 * * *")
        assert (found.count, [(tick.x, tick.first) for tick in found.ticks]) == (1, [(72, True)])
        assert [tick.x for tick in self.day("0 0 6,12 * * *").ticks] == [216, 288]

    def test_many_are_counted_and_none_is_a_word(self):
        with translation.override("en"):
            assert self.day("0 */5 * * * *").words == "288 times"
            assert self.day("* * * * * *").words == "86,400 times"
            assert self.day("0 0 6 1 * *").words == "none"

    def test_the_day_of_a_clock_change_is_counted_by_real_time(self):
        spring = datetime(2026, 3, 8, 5, tzinfo=UTC)  # midnight in New York; at two the clock goes to three
        assert self.day("0 */5 * * * *", "America/New_York", spring).count == 288
        assert self.day("0 30 2 * * *", "America/New_York", spring).count == 1


class TestInstantsInWords:
    NOW = datetime(2026, 10, 14, 17, 32, tzinfo=UTC)

    @pytest.mark.parametrize(
        ("at", "portuguese", "english"),
        [
            (NOW + timedelta(minutes=3), "14:35:00", "14:35:00"),
            (datetime(2026, 10, 14, 21, 15, tzinfo=UTC), "18:15", "18:15"),
            (datetime(2026, 10, 15, 10, 30, tzinfo=UTC), "qui 15/10 07:30", "Thu Oct 15 07:30"),
            (datetime(2027, 1, 1, 9, 0, 7, tzinfo=UTC), "sex 01/01/2027 06:00:07", "Fri 2027-01-01 06:00:07"),
        ],
    )
    def test_an_instant_is_said_as_people_say_it_in_the_viewers_zone(self, at, portuguese, english):
        for language, said in (("pt-br", portuguese), ("en", english)):
            with translation.override(language), timezone.override("America/Sao_Paulo"):
                assert schedulewords.coming(at, self.NOW).stands.endswith(said)

    @pytest.mark.parametrize(
        ("seconds", "said"),
        [(0, "in 0:00"), (173, "in 2:53"), (3600, "in 1 h 00"), (61_020, "in 16 h 57"), (86_400, "in 1 day"),
         (17 * 86_400, "in 17 days")],
    )  # fmt: skip
    def test_how_far_away_it_is(self, seconds, said):
        with translation.override("en"):
            assert schedulewords.until(seconds) == said


@pytest.mark.parametrize("bad", ["", "x", "1.", "y.name", "123456789012345678.n", "٣.n", ".\0"])
def test_a_cursor_that_is_none_is_refused(bad):
    with pytest.raises(ValueError, match="not a cursor"):
        ScheduleCursor.parse(bad)


def test_all_that_is_wrong_with_one_is_one_line_of_sentences():
    wrong = Invalid("Some fields.", errors={"payload.rows": ["Expected at least 1."], "payload.x": ["No such field."]})
    assert told(wrong) == "payload.rows: Expected at least 1. payload.x: No such field."


@pytest.mark.parametrize(
    ("seconds", "said"), [(30, "30 s"), (600, "10 min"), (3600, "1 h"), (5400, "1 h 30 min"), (172_800, "2 d")]
)
def test_a_span_that_somebody_set_says_no_more_than_they_did(seconds, said):
    assert wording.limit(seconds) == said
