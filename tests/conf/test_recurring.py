"""Declared recurring jobs in the settings: what their form allows; what they mean is the worker's to judge."""

import pytest

from jobs.conf import ConfigurationError

FILE = """
[recurring_jobs.nightly]
type = "report.generate"
cron = "0 3 * * *"
timezone = "America/Sao_Paulo"
payload = { rows = 5 }
overlap = "queue"
misfire = "skip"
priority = 3
queue = "reports"

[recurring_jobs."sync.erp"]
type = "integration.sync"
cron = "@hourly"
enabled = false
"""


def test_none_is_declared_by_default(read):
    assert read().recurring_jobs == {}
    assert read().scheduler.misfire_grace == 60


def test_each_stands_in_the_file_by_its_name(read):
    found = read(FILE).recurring_jobs
    nightly, sync = found["nightly"], found["sync.erp"]
    assert (nightly.type, nightly.cron, nightly.timezone) == ("report.generate", "0 3 * * *", "America/Sao_Paulo")
    assert (nightly.payload, nightly.overlap, nightly.misfire) == ({"rows": 5}, "queue", "skip")
    assert (nightly.priority, nightly.queue, nightly.enabled) == (3, "reports", True)
    assert (sync.timezone, sync.payload, sync.overlap, sync.misfire, sync.enabled) == ("UTC", {}, "skip", "once", False)


def test_variables_name_its_keys(read):
    found = read(
        TURNO_RECURRING_JOBS__NIGHTLY__TYPE="report.generate",
        TURNO_RECURRING_JOBS__NIGHTLY__CRON="0 3 * * *",
        TURNO_RECURRING_JOBS__NIGHTLY__PAYLOAD='{"rows": 5}',
    )
    assert found.recurring_jobs["nightly"].payload == {"rows": 5}


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("[recurring_jobs.a]\ntype = 'x'", "recurring_jobs.a.cron"),
        ("[recurring_jobs.a]\ncron = '* * * * *'", "recurring_jobs.a.type"),
        ("[recurring_jobs.a]\ntype = 'x'\ncron = '* * * * *'\nmissfire = 'skip'", "did you mean misfire"),
        ("[recurring_jobs.a]\ntype = 'x'\ncron = '* * * * *'\noverlap = 'maybe'", "recurring_jobs.a.overlap"),
        ("[recurring_jobs.a]\ntype = 'No Type'\ncron = '* * * * *'", "recurring_jobs.a.type"),
        ("[recurring_jobs.a]\ntype = 'x'\ncron = '* * * * *'\npriority = 11", "recurring_jobs.a.priority"),
        ("[recurring_jobs.A_b]\ntype = 'x'\ncron = '* * * * *'", "recurring_jobs.A_b"),
        ("recurring_jobs = 5", "recurring_jobs"),
    ],
)
def test_what_has_not_its_form_stops_the_start_with_its_key(read, file, said):
    with pytest.raises(ConfigurationError, match=said):
        read(file)


def test_a_bad_schedule_stops_no_start(read):
    assert read("[recurring_jobs.a]\ntype = 'x'\ncron = 'never'\ntimezone = 'Mars'").recurring_jobs["a"].cron == "never"
