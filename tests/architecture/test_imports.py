"""The rooms and floors: the contracts hold, each rule has its contract, and none of them was softened."""

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.tree import PROJECT, sources

SETTINGS = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
FORBIDDEN = [contract for contract in SETTINGS["contracts"] if contract["type"] == "forbidden"]
# Who may never import what, by room.
NEVER = [
    *[("jobs", room) for room in ("workers", "dashboard", "turno")],
    *[("workers", room) for room in ("dashboard", "turno", "jobs.api")],
    *[("dashboard", room) for room in ("workers", "turno", "jobs.api", "jobs.transitions")],
    *[(room, outside) for room in ("jobs", "dashboard") for outside in ("pika", "redis", "azure", "boto3")],
    *[(room, outside) for room in ("workers", "turno") for outside in ("pika", "redis", "azure", "boto3")],
]
# From the lowest floor up: each of these stands above the one before it.
FLOORS = {
    "jobs": ["states", "outcomes", "sections", "conf", "models", "transitions", "enqueue", "api", "management"],
    "workers": ["leases", "ledger", "execution", "isolation", "consumer", "worker", "management"],
}
# What the house may import of the rooms, and what each public door may.
HOUSE = ("jobs.api", "jobs.fila", "jobs.conf", "jobs.sections", "jobs.databaseurl", "jobs.speech")
HOUSE += ("jobs.admin", "jobs.bulk", "jobs.reachable", "jobs.registry", "dashboard.urls", "dashboard.routing")
DOORS = {
    "turno.handlers": ("jobs", "turno"),
    "turno.jobs": ("jobs",),
    "turno.testing": ("jobs", "workers", "turno"),
    "turno.client": (),
    "turno.samples": ("turno.samples", "turno.handlers"),
    "turno.launcher": ("turno.launcher", "turno.samples"),
}


def test_the_contracts_hold():
    linter = Path(sys.executable).with_name("lint-imports")
    checked = subprocess.run(
        [linter, "--no-cache", "--no-logo"], cwd=PROJECT, capture_output=True, text=True, check=False
    )

    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize(("room", "outside"), NEVER)
def test_each_rule_between_rooms_has_a_contract_that_covers_the_whole_room(room, outside):
    covering = [c for c in FORBIDDEN if room in c["source_modules"] and outside in c["forbidden_modules"]]

    assert covering
    assert SETTINGS["include_external_packages"] is True
    for contract in covering:
        # An exception is an adapter: one file of workers, or the one adapter of jobs for files in S3.
        assert all(" -> " in line and "*" not in line for line in contract.get("ignore_imports", []))
        assert len(contract.get("ignore_imports", [])) <= 4


@pytest.mark.parametrize("room", FLOORS)
def test_the_floors_stand_in_their_order_and_every_module_stands_on_one(room):
    (contract,) = [c for c in SETTINGS["contracts"] if c["type"] == "layers" and c["containers"] == [room]]
    height = {
        name.strip(" ()"): -row
        for row, layer in enumerate(contract["layers"])
        for name in layer.replace(":", "|").split("|")
    }

    assert contract["exhaustive"] is True
    assert set(contract["exhaustive_ignores"]) <= {"apps", "migrations"}
    assert "ignore_imports" not in contract
    assert ":" not in "".join(contract["layers"]), "neighbours on a floor do not import each other"
    floors = [height[name] for name in FLOORS[room]]
    assert floors == sorted(set(floors))


def imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            # `from turno import handlers` imports turno.handlers, `from jobs.conf import conf` jobs.conf.
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def within(module: str, allowed: tuple[str, ...]) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in allowed)


def test_the_house_and_its_doors_import_only_what_they_may():
    wrong = []
    for path, tree in sources("turno").items():
        module = path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        door = next((door for door in DOORS if within(module, (door,))), None)
        allowed = DOORS[door] if door else (*HOUSE, "turno")
        ours = [name for name in imported(tree) if within(name, ("jobs", "workers", "dashboard", "turno"))]
        wrong += [f"{path} imports {name}" for name in ours if not within(name, allowed)]

    assert wrong == []


def test_no_import_is_relative():
    relative = [
        f"{path}:{node.lineno}"
        for path, tree in sources().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.level
    ]

    assert relative == []
