"""Model and code go by the same names: a step that stands for a statement which is gone models something else."""

from functools import cache
from pathlib import Path

import pytest

from tests.laws.table import LAWS
from tests.model.case import Mutant
from tests.model.catalogue import LIMITS, MUTANTS
from tests.model.tied import VERBS, named, resolved, verbs_file

ROOT = Path(__file__).parents[2]
# Files of the verbs that no step stands for, and why.
LEFT_OUT = {
    "__init__": "names",
    "begin": "an owner's write under the fence, like a renewal",
    "keyring": "retention of keys that nobody uses",
    "letters": "what people do to letters: a requeue under one more lock",
    "limits": "who sets a limit: the rows that others lock",
    "losses": "what a lost job becomes, as `owner.fails` has it",
    "notes": "an owner's write under the fence, like a renewal",
    "plant": "rows of a demonstration",
    "priorities": "an edit of a job that waits: a new token and nothing else",
    "purge": "retention of what is final",
    "queues": "settings of queues",
    "seats": "the part of a claim that writes",
    "plain": "the INSERT of most jobs, which is `insert.INSERT` without what they do not ask for",
    "prepared": "how statements are kept",
    "rivals": "reads alone: who answers a request that met a key",
    "successors": "a wake and the claim of who was woken, one after the other with nobody between (decision 73)",
    "together": "how statements are said",
    "sql": "how statements are run",
    "unused": "retention of what nobody uses",
    "rates": "arithmetic, as `rates.Rates` has it",
}


@pytest.mark.parametrize("name", sorted(named()))
def test_every_step_stands_for_something_that_is_there(name):
    assert resolved(name) is not None


@pytest.mark.parametrize("name", ["claim.NO_SUCH_STATEMENT", "nowhere.at.all", "workers.ledger.NoSuchLedger"])
def test_a_name_that_is_gone_is_seen(name):
    with pytest.raises(LookupError, match="is gone"):
        resolved(name)


def test_every_file_of_the_verbs_is_modelled_or_left_out_with_a_reason():
    modelled = {file for name in named() if (file := verbs_file(name))}
    files = {path.stem for path in VERBS.glob("*.py")}

    assert files - modelled == set(LEFT_OUT), "modelled, or left out with a reason, and not both"


@pytest.mark.parametrize("case", MUTANTS, ids=str)
def test_every_guard_of_a_model_is_shown_by_the_real_thing(case: Mutant):
    laws = {law.guard for law in LAWS}

    assert case.shown_by
    assert [name for name in case.shown_by if not (name in laws or is_test(name))] == []


@cache
def is_test(name: str) -> bool:
    """Whether it names a test, or a file of tests, that is there."""
    path, _, function = name.partition("::")
    file = ROOT / path
    return path.endswith(".py") and file.exists() and (not function or f"def {function}(" in file.read_text())


def test_what_nothing_helps_against_is_no_guard():
    assert [case for case in LIMITS if case.removed or case.shown_by] == []
