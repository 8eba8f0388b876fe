"""A configuration that can't be used: every problem at once, each with its key, what was expected and what is there."""

import pytest

from jobs.conf import ConfigurationError, load
from workers import protocol


@pytest.fixture
def problems(read):
    """The sentences about this file and these variables."""

    def problems(file: str | bytes = "", **variables: str) -> list[str]:
        with pytest.raises(ConfigurationError) as refused:
            read(file, **variables)
        assert refused.value.__suppress_context__, "Pydantic's own error would show what was put in"
        return str(refused.value).splitlines()

    return problems


DURATION = 'expected a duration such as "60s", "10 min", "500ms", "7d" or a number of seconds'


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"TURNO_WORKER__LEASE_DURATION": "abc"}, f"TURNO_WORKER__LEASE_DURATION: {DURATION}; got 'abc'"),
        ({"TURNO_WORKER__LEASE_DURATION": "-5"}, f"TURNO_WORKER__LEASE_DURATION: {DURATION}; got '-5'"),
        ({"TURNO_WORKER__LEASE_DURATION": "0"}, "TURNO_WORKER__LEASE_DURATION: expected at least 1; got '0'"),
        ({"TURNO_WORKER__POLL_INTERVAL": "0s"}, "TURNO_WORKER__POLL_INTERVAL: expected more than 0; got '0s'"),
        (
            {"TURNO_WORKER__LEASE_DURATIN": "60s"},
            "TURNO_WORKER__LEASE_DURATIN: there is no such key; did you mean TURNO_WORKER__LEASE_DURATION?",
        ),
        (
            {"turno_worker__lease_duratin": "60s"},
            "turno_worker__lease_duratin: there is no such key; did you mean TURNO_WORKER__LEASE_DURATION?",
        ),
        ({"TURNO_WORKER__XYZZY": "1"}, "TURNO_WORKER__XYZZY: there is no such key"),
        (
            {"TURNO_WROKER__POLL_INTERVAL": "1"},
            "TURNO_WROKER__POLL_INTERVAL: there is no such section; did you mean TURNO_WORKER__POLL_INTERVAL?",
        ),
        (
            {"TURNO_WORKER_POLL_INTERVAL": "1"},
            "TURNO_WORKER_POLL_INTERVAL: there is no such section; did you mean TURNO_WORKER__POLL_INTERVAL?",
        ),
        ({"TURNO_XYZZY": "1"}, "TURNO_XYZZY: there is no such section"),
        ({"TURNO_HANDLER": "a"}, "TURNO_HANDLER: there is no such section; did you mean TURNO_HANDLERS?"),
        ({"TURNO_WORKER": "foo"}, "TURNO_WORKER: a section is not a setting; expected TURNO_WORKER__KEY"),
        ({"TURNO_WORKER__": "foo"}, "TURNO_WORKER__: a section is not a setting; expected TURNO_WORKER__KEY"),
        (
            {"TURNO_WORKER__LEASE_DURATION__X": "1"},
            f"worker.lease_duration (TURNO_WORKER__LEASE_DURATION__X): {DURATION}",
        ),
        ({"TURNO_WEB__PORT": "99999"}, "TURNO_WEB__PORT: expected at most 65535; got '99999'"),
        ({"TURNO_WEB__PORT": "http"}, "TURNO_WEB__PORT: expected a whole number; got 'http'"),
        ({"TURNO_WEB__PORT": "9" * 5000}, "TURNO_WEB__PORT: expected a whole number; got '" + "9" * 79),
        ({"TURNO_RESILIENCE__JITTER": "much"}, "TURNO_RESILIENCE__JITTER: expected a number; got 'much'"),
        ({"TURNO_RESILIENCE__JITTER": "nan"}, "TURNO_RESILIENCE__JITTER: expected at most 1.0; got 'nan'"),
        ({"TURNO_SAMPLES__ENABLED": "maybe"}, "TURNO_SAMPLES__ENABLED: expected true or false; got 'maybe'"),
        (
            {"TURNO_MESSAGING__TRANSPORT": "kafka"},
            "TURNO_MESSAGING__TRANSPORT: expected one of 'postgres', 'rabbitmq' or 'servicebus'; got 'kafka'",
        ),
        (
            {"TURNO_WORKER__QUEUES": "default:4,critical"},
            "TURNO_WORKER__QUEUES: 'critical': expected queue:slots, with 1 to 1000 slots; got 'default:4,critical'",
        ),
        ({"TURNO_HANDLERS": '["a"'}, 'TURNO_HANDLERS: expected a list: a,b or ["a", "b"]; got \'["a"\''),
        ({"TURNO_HANDLERS": "[1]"}, "handlers.0 (TURNO_HANDLERS): expected text; got 1"),
        (
            {"TURNO_HANDLERS": "my module"},
            "handlers.0 (TURNO_HANDLERS): expected the name of a Python module, such as package.module; "
            "got 'my module'",
        ),
        (
            {"TURNO_RESILIENCE__TYPES": "foo"},
            'TURNO_RESILIENCE__TYPES: expected a JSON object, such as {"report.generate": {"timeout": "5 min"}}; '
            "got 'foo'",
        ),
        (
            {"TURNO_RESILIENCE__TYPES": '{"a.b": {"timeot": 1}}'},
            "resilience.types.a.b.timeot (TURNO_RESILIENCE__TYPES): there is no such key; did you mean timeout?",
        ),
        (
            {"TURNO_RESILIENCE__TYPES": '{"A B": {}}'},
            "resilience.types.A B (TURNO_RESILIENCE__TYPES): expected the name of a job type: a-z, 0-9, '.', '_' or "
            "'-'; got 'A B'",
        ),
        (
            {"TURNO_RESILIENCE__TYPES": '{"a.b": {"queue": "dead-letter"}}'},
            "resilience.types.a.b.queue (TURNO_RESILIENCE__TYPES): expected the name of a queue: a-z, 0-9, '.', '_' "
            "or '-', and neither dead-letter nor …_error; got 'dead-letter'",
        ),
    ],
    ids=str,
)
def test_a_wrong_variable_is_named_with_what_was_expected(problems, variables, sentence):
    assert problems(**variables) == [sentence]


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        ("[worker]\nlease_duration = 'abc'", f"worker.lease_duration (turno.toml): {DURATION}; got 'abc'"),
        ("[worker]\nlease_duration = nan", "worker.lease_duration (turno.toml): expected a duration between"),
        ("[worker]\nlease_duration = [1]", f"worker.lease_duration (turno.toml): {DURATION}"),
        (
            "[worker]\nlease_duratin = 1",
            "worker.lease_duratin (turno.toml): there is no such key; did you mean lease_duration?",
        ),
        ("[wroker]\nx = 1", "wroker (turno.toml): there is no such key; did you mean worker?"),
        ("worker = 5", "worker (turno.toml): expected a table of keys"),
        ("[web]\nport = true", "web.port (turno.toml): expected a number; got True"),
        ("[web]\nport = 80.5", "web.port (turno.toml): expected a whole number; got 80.5"),
        ("[api]\ndocs = 'maybe'", "api.docs (turno.toml): expected true or false; got 'maybe'"),
        ("handlers = 5", "handlers (turno.toml): expected a list; got 5"),
        ("handlers = {a = 1}", "handlers (turno.toml): expected a list"),
        ("[resilience]\ntypes = 3", "resilience.types (turno.toml): expected a table of keys; got 3"),
        (
            "[worker]\nlease_duration = 15",
            "worker (turno.toml): lease_renewal_interval must be at most half of lease_duration",
        ),
        (
            "[worker]\nsilent_after = 5",
            "worker (turno.toml): heartbeat_interval must be shorter than silent_after",
        ),
    ],
    ids=str,
)
def test_a_wrong_key_of_the_file_is_named_with_what_was_expected(problems, file, sentence):
    (line,) = problems(file)

    assert line.startswith(sentence)


def test_two_durations_that_do_not_fit_each_other_are_refused_wherever_they_come_from(problems):
    assert problems("[worker]\nlease_renewal_interval = 31") != []
    (line,) = problems("[worker]\nlease_renewal_interval = 5", TURNO_WORKER__LEASE_DURATION="9")
    assert "at most half" in line


def test_what_a_worker_tells_its_own_processes_is_no_setting(read):
    told = {"TURNO_WORKER_ID": "01890a5d-ac96-774b-bcce-b302099a8057", "TURNO_SUPERVISOR_FD": "7", "TURNO_CHILD": "1"}
    assert set(told) == set(protocol.VARIABLES)
    assert read(**told).handlers == ()


def test_every_problem_is_told_at_once(problems):
    lines = problems(
        "[worker]\nqueues = 'x'\n[web]\nprot = 1",
        TURNO_WROKER__X="1",
        TURNO_API__KEY="short",
        TURNO_SCHEDULER__INTERVAL="never",
    )

    assert [line.split(":")[0] for line in lines] == [
        "TURNO_WROKER__X",
        "worker.queues (turno.toml)",
        "TURNO_SCHEDULER__INTERVAL",
        "TURNO_API__KEY",
        "web.prot (turno.toml)",
    ]


@pytest.mark.usefixtures("read")
def test_a_file_that_is_missing_is_named_beside_the_other_problems(monkeypatch, tmp_path):
    monkeypatch.setenv("TURNO_CONFIG", str(tmp_path / "absent.toml"))
    monkeypatch.setenv("TURNO_WEB__PORT", "http")

    with pytest.raises(ConfigurationError) as refused:
        load()

    first, second = str(refused.value).splitlines()
    assert first == f"TURNO_CONFIG: there is no file {tmp_path / 'absent.toml'}"
    assert second.startswith("TURNO_WEB__PORT: ")


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        ("[worker\n", "is not TOML: "),
        ("password = 'sekret", "is not TOML: "),
        ("a = 1\na = 2", "is not TOML: "),
        ("[worker]\nname = 'José'".encode("latin-1"), "is not UTF-8 text"),
        (b"\x00\x01", "is not TOML: "),
        (b"\xff\xfe[\x00", "is not UTF-8 text"),
        ("a = " + "[" * 5000, "is not TOML: "),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_file_that_is_no_toml_is_named_and_not_shown(problems, tmp_path, file, sentence):
    (line,) = problems(file)

    assert line.startswith(f"{tmp_path / 'turno.toml'} {sentence}")
    assert "sekret" not in line


@pytest.mark.usefixtures("read")
def test_a_folder_in_the_place_of_the_file_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("TURNO_CONFIG", str(tmp_path))
    with pytest.raises(ConfigurationError, match="can't be read"):
        load()


def test_a_file_with_a_byte_order_mark_is_read(read):
    assert read(b"\xef\xbb\xbf[web]\nport = 9000").web.port == 9000


SECRET = "sekret/p@ss#w?rd"


@pytest.mark.parametrize(
    "variables",
    [
        {"TURNO_DATABASE__URL": f"postgresql://u:{SECRET}@h/d"},
        {"TURNO_DATABASE__URL": f"mysql://u:{SECRET}@h/d"},
        {"TURNO_DATABASE__URL": "postgresql://u:sekret@h:port/d"},
        {"TURNO_DATABASE__URL": "postgresql://u:sekret@h:70000/d"},
        {"TURNO_DATABASE__URL": "postgresql://u:sekret@h:5432"},
        {"TURNO_DATABASE__URL": "postgresql://u:sekret@h:5432/"},
        {"TURNO_DATABASE__URL": "postgresql://u:sek%zzret@h/d"},
        {"TURNO_DATABASE__URL": "postgresql://u:12/sekret@h/d"},
        {"TURNO_DATABASE__URL": "postgresql://u:p@sekret@h/d"},
        {"TURNO_DATABASE__URL": "postgresql://u:sekret\n@h/d"},
        {"TURNO_DATABASE__URL": "postgresql://u:sekret@[::1/d"},
        {"TURNO_DATABASE__URL": "postgresql://u:sek℀ret@h:x/d"},
        {"TURNO_DATABASE__URL": "sekret"},
        {"TURNO_DATABASE__DIRECT_URL": f"postgresql://u:{SECRET}@h:x/d"},
        {"TURNO_DATABASE": f"postgresql://u:{SECRET}@h/d"},
        {"TURNO_DATABASE__PASSWORD": "sekret"},
        {"TURNO_DATABASE__CONNECT_TIMEOUT": f"postgresql://u:{SECRET}@h/d"},
        {"DATABASE_URL": f"postgres://u:{SECRET}@h:x/d"},
        {"JOBS_DATABASE_URL": "postgresql+psycopg://u:sekret@h/d"},
        {"TURNO_API__KEY": "sekret"},
        {"TURNO_WEB__SECRET_KEY": "sekret"},
        {"TURNO_API_KEY": "sekret"},
    ],
    ids=str,
)
def test_no_message_shows_a_secret(problems, variables):
    text = "\n".join(problems(**variables))

    for part in ("sek", "p@ss", "w?rd"):
        assert part not in text
    (name,) = variables
    assert name in text


@pytest.mark.parametrize("file", ["[api]\nkey = {a = 'sekret'}", "[database]\nurl = ['sekret']", "api = 'sekret'"])
def test_no_message_shows_a_secret_of_a_file_that_has_the_wrong_shape(problems, file):
    assert "sekret" not in "\n".join(problems(file))
