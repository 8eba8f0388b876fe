"""Where settings come from, and which source wins."""

import pytest
from pydantic import ValidationError

from jobs.conf import Settings, conf, overridden


def test_without_a_source_every_setting_has_its_default(read):
    settings = read()

    assert settings == Settings()
    assert settings.worker.lease_duration == 60
    assert settings.worker.lease_renewal_interval == 10
    assert settings.worker.heartbeat_interval == 5
    assert settings.worker.shutdown_timeout == 30
    assert settings.worker.queues == "default:4,critical:2,reports:2"
    assert (settings.scheduler.interval, settings.scheduler.batch_size) == (2, 200)
    assert (settings.recovery.interval, settings.recovery.lease_grace_period) == (10, 15)
    assert settings.retention.succeeded == settings.retention.cancelled == 7 * 86400
    assert (settings.retention.failed, settings.retention.dead_letters) == (30 * 86400, 90 * 86400)
    assert (settings.retention.metrics, settings.retention.audit) == (35 * 86400, 180 * 86400)
    assert (settings.retention.offline_workers, settings.retention.interval) == (86400, 60)
    assert (settings.web.bind, settings.web.port, settings.api.key) == ("127.0.0.1", 8080, None)


def test_the_defaults_are_valid_themselves():
    assert Settings(**Settings().model_dump()) == Settings()


def test_the_file_beats_the_default_and_the_environment_beats_the_file(read):
    file = """
        handlers = ["from.file"]
        [worker]
        lease_duration = "2 min"
        poll_interval = 3
    """

    settings = read(file, TURNO_WORKER__LEASE_DURATION="90s", TURNO_WEB__PORT="9000")

    assert settings.worker.lease_duration == 90
    assert settings.worker.poll_interval == 3
    assert settings.worker.heartbeat_interval == 5
    assert settings.web.port == 9000
    assert settings.handlers == ("from.file",)


def test_an_empty_variable_counts_as_absent(read):
    assert read("[web]\nport = 9000", TURNO_WEB__PORT="", TURNO_HANDLERS="").web.port == 9000


def test_the_policies_of_types_come_from_the_file_or_as_a_whole_from_a_variable(read):
    file = '[resilience.types."report.generate"]\ntimeout = "5 min"\nmax_attempts = 2'

    assert read(file).resilience.types["report.generate"].timeout == 300
    types = read(file, TURNO_RESILIENCE__TYPES='{"a.b": {"queue": "slow"}}').resilience.types
    assert {name: policy.queue for name, policy in types.items()} == {"a.b": "slow"}


def test_a_variable_names_the_key_of_a_type_without_dots(read):
    assert read(TURNO_RESILIENCE__TYPES__REPORT__TIMEOUT="5m").resilience.types["report"].timeout == 300


@pytest.mark.parametrize("written", ['["a.b", "c"]', "a.b,c", " a.b , c ", "a.b,c,"])
def test_a_list_is_json_or_parts_between_commas(read, written):
    assert read(TURNO_HANDLERS=written).handlers == ("a.b", "c")


def test_a_list_inside_a_section_is_read_alike(read):
    hosts = read(TURNO_WEB__ALLOWED_HOSTS="turno.example.org,[::1]").web.allowed_hosts

    assert hosts == ("turno.example.org", "[::1]")


def test_names_of_the_older_systems_are_the_weakest_source(read):
    first, second, third = (f"postgresql://h/{name}" for name in ("first", "second", "third"))

    assert read(DATABASE_URL=first).database.url == first
    assert read(JOBS_DATABASE_URL=second).database.url == second  # DATABASE_URL is still set
    assert read(f'[database]\nurl = "{third}"').database.url == third
    assert read(TURNO_DATABASE__URL=first).database.url == first


def test_settings_do_not_change_while_the_process_lives(read):
    settings = read()

    with pytest.raises(ValidationError, match="frozen"):
        settings.web.port = 1
    with pytest.raises(ValidationError, match="frozen"):
        settings.web = None


def test_no_secret_shows_when_the_settings_are_printed(read):
    settings = read(
        TURNO_DATABASE__URL="postgresql://u:sekret-1@h/d",
        TURNO_DATABASE__DIRECT_URL="postgresql://u:sekret-2@h/d",
        TURNO_API__KEY="sekret-3-and-more",
        TURNO_WEB__SECRET_KEY="sekret-4-" * 8,
    )

    assert "sekret" not in f"{settings!r} {settings} {settings.api!r} {settings.database} {settings.web}"
    assert settings.api.key == "sekret-3-and-more"


def test_overridden_changes_some_keys_for_a_while():
    before = conf()

    with overridden(worker={"poll_interval": "100ms"}, handlers=["a.b"]) as changed:
        assert conf() is changed
        assert changed.worker.poll_interval == 0.1
        assert changed.handlers == ("a.b",)
        assert changed.retention == before.retention
        with overridden(worker={"poll_interval": 2}):
            assert conf().worker.poll_interval == 2
        assert conf() is changed

    assert conf() is before


def test_overridden_removes_what_a_source_had_set():
    with overridden(resilience={"types": {"a.b": {"timeout": 5}}}), overridden(resilience={"types": {}}):
        assert conf().resilience.types == {}


def test_overridden_puts_back_after_an_error_and_refuses_what_is_wrong():
    before = conf()

    with pytest.raises(RuntimeError), overridden(web={"port": 1}):
        raise RuntimeError
    with pytest.raises(ValidationError, match="port"), overridden(web={"port": 0}):
        pass

    assert conf() is before


def test_blanks_around_the_access_key_are_none_of_it(read):
    assert read(TURNO_API__KEY="  key with blanks \n").api.key == "key with blanks"
