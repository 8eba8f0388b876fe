"""docker-compose.yml: what Compose itself says of it, and what the house demands of it."""

import json
import re

import pytest

from jobs.conf import Settings
from jobs.durations import parse_duration
from jobs.sections import Worker
from tests.docker.composed import EXAMPLE, FILE, PROJECT, SECRETS, compose, explained, laid, model, variables
from tests.docs.blocks import blocks

SERVERS = {"postgres", "redis", "rabbitmq"}
OURS = {"migrate", "web", "worker"}
SECRET = re.compile("PASSWORD|KEY|SECRET")


@pytest.fixture
def services(tmp_path):
    return model(tmp_path)["services"]


def test_compose_accepts_it(tmp_path):
    """Compose checks it against the schema of its specification, and then what no schema can say."""
    done = compose(laid(tmp_path, SECRETS), "config", "--quiet")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("old", "new"),
    [("    hostname:", "    hostnam:"), ("condition: service_healthy", "condition: well"), ("- postgres:/", "- pg:/")],
)
def test_compose_would_refuse_a_mistake(tmp_path, old, new):
    text = FILE.read_text(encoding="utf-8")
    assert old in text
    assert compose(laid(tmp_path, SECRETS, text.replace(old, new)), "config", "--quiet").returncode != 0


def test_it_has_the_servers_the_web_process_workers_and_one_migration(services):
    assert set(services) == SERVERS | OURS


@pytest.mark.parametrize("name", sorted(set(SECRETS) - {"DJANGO_SUPERUSER_PASSWORD"}))
def test_a_missing_secret_is_named_with_what_writes_it(tmp_path, name):
    done = compose(laid(tmp_path, {key: value for key, value in SECRETS.items() if key != name}), "config")
    assert done.returncode != 0
    assert f"required variable {name} is missing a value: ./iniciar.sh --docker" in done.stderr


def test_no_secret_has_a_default():
    text = FILE.read_text(encoding="utf-8")
    given = re.findall(r"\$\{(\w+):?-([^}]*)\}", text)
    assert [name for name, default in given if SECRET.search(name) and default] == []
    assert all(value == "" for name, value in explained().items() if SECRET.search(name))


def test_each_variable_is_explained_in_the_example():
    assert variables() <= set(explained()), variables() - set(explained())
    assert set(SECRETS) <= set(explained())


def test_each_setting_of_the_example_exists_and_each_default_is_the_one_that_is_said():
    for name, said in explained().items():
        if not name.startswith("TURNO_") or name == "TURNO_LANG":
            continue
        section, _two, key = name.removeprefix("TURNO_").lower().partition("__")
        model = Settings.model_fields[section].annotation if key else Settings
        assert (key or section) in model.model_fields, name
        default = getattr(model(), key or section)
        if default and said:
            assert getattr(model(**{key or section: said}), key or section) == default or "://" in said, name


def test_the_example_explains_each_variable_in_both_languages():
    comment = ""
    for line in EXAMPLE.read_text(encoding="utf-8").splitlines():
        if re.match(r"#?[A-Z][A-Z0-9_]+=", line):
            assert comment, line
        else:
            comment = line.removeprefix("#").strip(" -")


def test_each_port_is_open_on_loopback_alone(services):
    opened = [(name, port) for name, service in services.items() for port in service.get("ports", ())]
    assert {(name, port["target"]) for name, port in opened} == {
        ("postgres", 5432), ("redis", 6379), ("rabbitmq", 5672), ("rabbitmq", 15672), ("web", 8080),
    }  # fmt: skip
    assert {port["host_ip"] for _name, port in opened} == {"127.0.0.1"}


def test_only_the_web_port_goes_to_another_address_and_only_when_asked(tmp_path):
    asked = model(tmp_path, TURNO_WEB__BIND="0.0.0.0", TURNO_WEB__PORT="9000")["services"]  # noqa: S104
    [web] = asked["web"]["ports"]
    assert (web["host_ip"], web["published"]) == ("0.0.0.0", "9000")  # noqa: S104
    assert asked["web"]["environment"]["TURNO_WEB__PORT"] == "8080"
    others = [port for name in SERVERS for port in asked[name]["ports"]]
    assert {port["host_ip"] for port in others} == {"127.0.0.1"}


def test_workers_can_be_scaled(services, tmp_path):
    assert services["worker"]["deploy"]["replicas"] == 3
    assert model(tmp_path, WORKERS="8")["services"]["worker"]["deploy"]["replicas"] == 8
    assert not {"container_name", "ports", "hostname"} & set(services["worker"])
    assert not any("container_name" in service for service in services.values())


def test_each_process_that_stays_up_is_watched_restarted_and_reaped_and_its_log_is_bounded(services):
    for name, service in services.items():
        assert service["init"] is True, name
        assert set(service["logging"]["options"]) == {"max-size", "max-file"}, name
        if name != "migrate":
            assert service["healthcheck"]["test"][0] in {"CMD", "CMD-SHELL"}, name
            assert service["restart"] == "unless-stopped", name
    assert services["migrate"]["restart"] == "no"


def test_the_health_checks_are_those_that_tell_the_truth(services):
    tests = {name: " ".join(service["healthcheck"]["test"]) for name, service in services.items() if name != "migrate"}
    assert "pg_isready" in tests["postgres"]
    assert "-h 127.0.0.1" in tests["postgres"]  # while the data are made it listens on its socket alone
    assert "redis-cli ping" in tests["redis"]
    assert tests["rabbitmq"].endswith("rabbitmq-diagnostics -q check_port_connectivity")
    assert "/health/live" in tests["web"]
    assert "manage.py turno alive" in tests["worker"]


def test_nothing_of_ours_starts_before_what_it_stands_on(services):
    def waits(name):
        return {other: what["condition"] for other, what in services[name].get("depends_on", {}).items()}

    well, done = "service_healthy", "service_completed_successfully"
    assert waits("migrate") == {"postgres": well}
    assert waits("web") == {"migrate": done, "redis": well}
    assert waits("worker") == {"migrate": done, "redis": well, "rabbitmq": well}
    assert not any(waits(name) for name in SERVERS)  # they start alone: docker compose up -d postgres redis rabbitmq


def test_a_worker_gets_the_time_that_its_supervisor_needs(services):
    settings = Worker()
    given = parse_duration(services["worker"]["stop_grace_period"].replace("m0s", "min"))
    assert given >= settings.shutdown_timeout + settings.kill_grace + 20


def test_images_of_others_are_pinned_to_a_version_and_ours_is_built_once(services):
    for name in SERVERS:
        tag = services[name]["image"].partition(":")[2]
        assert re.match(r"\d", tag), name
    assert int(re.match(r"\d+", services["postgres"]["image"].partition(":")[2])[0]) >= 15
    # A node of a minor version too far from the data's does not start: a pull must not choose it.
    assert re.fullmatch(r"\d+\.\d+-management", services["rabbitmq"]["image"].partition(":")[2])
    assert len({services[name]["image"] for name in OURS}) == 1
    assert [name for name in services if "build" in services[name]] == ["migrate"]
    assert {services[name]["pull_policy"] for name in OURS} == {"never"}


def test_two_copies_of_the_project_share_no_image_and_no_volume(tmp_path):
    first, second = (model(tmp_path, COMPOSE_PROJECT_NAME=name) for name in ("one", "two"))
    assert first["services"]["web"]["image"] != second["services"]["web"]["image"]
    assert {volume["name"] for volume in first["volumes"].values()} == {"one_postgres", "one_rabbitmq"}


def test_what_must_not_be_lost_is_in_volumes_and_is_found_there_again(services):
    def targets(name):
        return {(v["type"], v["source"]): v["target"] for v in services[name].get("volumes", ())}

    assert targets("postgres") == {("volume", "postgres"): "/var/lib/postgresql/data"}
    assert targets("rabbitmq") == {("volume", "rabbitmq"): "/var/lib/rabbitmq"}
    assert services["rabbitmq"]["hostname"] == "rabbitmq"  # a node's data stand under its host's name


def test_our_containers_have_no_rights_that_they_do_not_need(services):
    for name in OURS:
        assert services[name]["cap_drop"] == ["ALL"], name
        assert services[name]["security_opt"] == ["no-new-privileges:true"], name
    assert services["worker"]["environment"]["DJANGO_SUPERUSER_PASSWORD"] == ""


def test_what_a_start_without_docker_wrote_into_env_names_no_server_in_the_containers(tmp_path):
    private = {
        "TURNO_DATABASE__URL": "postgresql://turno_private:x@127.0.0.1:20001/turno",
        "TURNO_DATABASE__DIRECT_URL": "postgresql://somebody@127.0.0.1:20001/turno",
        "TURNO_MESSAGING__URLS": "amqp://turno_private:x@127.0.0.1:20002/",
        "TURNO_REDIS__URLS": "redis://turno_private:x@127.0.0.1:20003/0",
    }
    for name in OURS:
        seen = model(tmp_path, **private)["services"][name]["environment"]
        assert not any("127.0.0.1:2" in value for value in seen.values()), name


def test_every_host_that_the_containers_are_told_of_is_a_service(services):
    for name in OURS:
        told = " ".join(services[name]["environment"].values())
        assert set(re.findall(r"@(\w+):\d+|://:?[^@ ]*@(\w+):", told)) <= {(s, "") for s in SERVERS} | {
            ("", s) for s in SERVERS
        }, name


@pytest.mark.parametrize("page", ["en/installation.md", "pt-BR/instalacao.md"])
def test_handlers_come_in_as_the_manual_says(tmp_path, page):
    [override] = [b.text for b in blocks(PROJECT / "docs/manual" / page) if b.language == "yaml"]
    (laid(tmp_path, SECRETS) / "docker-compose.override.yml").write_text(override, encoding="utf-8")
    done = compose(tmp_path, "config", "--format", "json")
    assert done.returncode == 0, done.stderr
    for name in ("web", "worker"):
        service = json.loads(done.stdout)["services"][name]
        assert service["environment"]["TURNO_HANDLERS"] == "billing"
        assert service["environment"]["TURNO_MESSAGING__TRANSPORT"] == "rabbitmq"
        assert [(v["target"], v["read_only"]) for v in service["volumes"]] == [("/srv/my-jobs", True)]


def test_what_the_manual_says_of_ports_and_images_is_so(services):
    for page in ("en/installation.md", "pt-BR/instalacao.md"):
        text = (PROJECT / "docs/manual" / page).read_text(encoding="utf-8")
        for name, service in services.items():
            [row] = re.findall(rf"^\| `{name}` \|.*$", text, re.MULTILINE)
            opened = {port["published"] for port in service.get("ports", ())}
            assert opened == set(re.findall(r"\b\d{4,5}\b", row)), name
        assert f"PostgreSQL {re.findall(r'[0-9]+', services['postgres']['image'])[0]}," in text
