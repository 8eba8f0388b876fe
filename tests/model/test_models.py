"""Each model of the protocol holds, whatever happens in it; each guard that it has breaks a promise when it goes."""

from collections import Counter

import pytest

from tests.model.case import Case, Mutant, made, searched
from tests.model.catalogue import HOLDS, LIMITS, LONG, MUTANTS
from tests.model.checker import MOST, Model, Step, check, then
from tests.model.tied import named

pytestmark = pytest.mark.slow
EVERYTHING = 20 * MOST


def told(case: Case, sentence: str | None, trace: tuple[str, ...]) -> str:
    """What a failing test says: the interleaving."""
    return "\n".join([f"{case}: {sentence}", *(f"{number:3} {label}" for number, label in enumerate(trace, 1))])


@pytest.mark.parametrize("case", HOLDS, ids=str)
def test_a_model_holds(case: Case):
    found = searched(case)

    assert found.complete, f"more than {MOST} states: not a model for every run"
    assert found.sentence is None, told(case, found.sentence, found.trace)
    assert found.met - {""} <= named(), "a step whose name is put together is looked for by nobody"


@pytest.mark.longo
@pytest.mark.parametrize("case", LONG, ids=str)
def test_a_large_model_holds(case: Case):
    found = searched(case, most=EVERYTHING)

    assert found.complete
    assert found.sentence is None, told(case, found.sentence, found.trace)


@pytest.mark.parametrize("case", MUTANTS, ids=str)
def test_a_model_without_a_guard_breaks_its_promise(case: Mutant):
    found = searched(case)

    assert found.sentence is not None, "it holds: the guard is not needed, or the model does not see what it is for"
    assert case.promise in found.sentence, told(case, found.sentence, found.trace)
    assert found.trace


@pytest.mark.parametrize("case", LIMITS, ids=str)
def test_what_nothing_helps_against_is_known(case: Mutant):
    found = searched(case)

    assert found.sentence is not None, "nothing breaks any more: then say so where people read of it"
    assert case.promise in found.sentence


@pytest.mark.parametrize("model", sorted({case.model for case in HOLDS}, key=lambda model: model.__name__))
def test_each_guard_of_a_model_is_removed_by_some_mutant(model: type[Model]):
    guards = {name for name, value in vars_of(model).items() if value is True}
    removed = {name for case in MUTANTS if case.model is model for name in case.removed}
    elsewhere = {name for case in [*HOLDS, *LONG] for name, value in case.flags.items() if value is False}

    assert guards - removed - elsewhere - AS_THEY_ARE == set()


# No guards: what is there at first.
AS_THEY_ARE = {"goes_on_alone", "gives_back_own", "newcomer", "killable", "starts_paused", "comes_late"}


def vars_of(model: type[Model]) -> dict[str, object]:
    return {name: value for kind in reversed(model.__mro__) for name, value in vars(kind).items()}


def test_no_two_rows_of_the_catalogue_have_one_name():
    names = Counter(str(case) for case in [*HOLDS, *LONG, *MUTANTS, *LIMITS])

    assert [name for name, count in names.items() if count > 1] == []


class Counts(Model):
    """Counts to `last` by ones and, where that is a fault, by twos."""

    last = 3

    def begin(self):
        return {"n": 0}

    def steps(self, now):
        if now["n"] < self.last:
            yield Step("", "one more", then(now, n=now["n"] + 1))
            yield Step("", "two more", then(now, n=now["n"] + 2), fault=True)

    def broken(self, now):
        return "it is four" if now["n"] == 4 else None

    def stuck(self, now):
        return "it stays at three" if now["n"] == 3 else None


def test_the_shortest_way_to_what_breaks_is_told():
    found = check(Counts(last=3))

    assert (found.sentence, found.trace) == ("it stays at three", ("one more", "two more"))
    assert not found.holds


def test_a_search_that_was_cut_short_holds_nothing():
    found = check(Counts(last=3), most=2)

    assert not found.complete
    assert not found.holds


def test_a_flag_that_a_model_does_not_have_is_refused():
    with pytest.raises(TypeError, match="no_such_guard"):
        made(Case(Counts, "x", {"no_such_guard": True}))
