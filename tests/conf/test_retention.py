"""How long things are kept: what may be set, and what is said of the rest."""

import pytest

from jobs.conf import ConfigurationError


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("SUCCEEDED", "-1d", "expected a duration"),
        ("FAILED", "101 years", "expected a duration"),
        ("DEAD_LETTERS", "40000d", "between 0 and 100 years"),
        ("METRICS", "1h", "at least 86400"),
        ("AUDIT", "never", "expected a duration"),
        ("INTERVAL", "0s", "at least 0.1"),
        ("INTERVAL", "2d", "at most 86400"),
        ("BATCH_SIZE", "0", "at least 1"),
        ("BATCH_SIZE", "5001", "at most 5000"),
        ("BATCH_SIZE", "many", "a whole number"),
    ],
)
def test_what_can_not_be_meant_stops_the_start_and_is_named(read, name, value, expected):
    with pytest.raises(ConfigurationError) as refused:
        read(**{f"TURNO_RETENTION__{name}": value})
    [sentence] = str(refused.value).splitlines()
    assert sentence.startswith(f"TURNO_RETENTION__{name}: ")
    assert expected in sentence


def test_nothing_has_to_be_kept_but_the_metrics_of_a_day(read):
    env = {f"TURNO_RETENTION__{name}": "0s" for name in ("SUCCEEDED", "CANCELLED", "FAILED", "DEAD_LETTERS", "AUDIT")}
    kept = read(**env, TURNO_RETENTION__METRICS="24h").retention
    assert (kept.succeeded, kept.cancelled, kept.failed, kept.dead_letters, kept.audit) == (0, 0, 0, 0, 0)
    assert kept.metrics == 86400
