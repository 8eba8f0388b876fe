"""A law without a test that breaks when its guard goes is only a wish: here they go, one after another."""

import pytest

from tests.laws.guards import BrokenPromise, Sql, without
from tests.laws.table import LAWS, Law
from tests.transitions import COMMITTED

pytestmark = [COMMITTED, pytest.mark.usefixtures("committed")]
LAYERS = [
    pytest.param(law, layer, id=f"{law}, layer {layer + 1}")
    for law in LAWS
    if len(law.layers) > 1
    for layer in range(len(law.layers))
]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_with_its_guard_the_promise_is_kept(law: Law):
    law.scenario()


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_without_its_guard_the_promise_is_broken(law: Law):
    with without(*law.layers), pytest.raises(BrokenPromise, match=law.promise):
        law.scenario()


@pytest.mark.parametrize(("law", "layer"), LAYERS)
def test_of_several_layers_each_alone_keeps_the_promise(law: Law, layer: int):
    with without(*law.layers[:layer], *law.layers[layer + 1 :]):
        law.scenario()


def test_every_law_that_there_is_a_guard_for_stands_in_the_table():
    assert {law.number for law in LAWS} == {1, 2, 3, 4, 5, 6}


def test_a_guard_that_is_not_where_it_is_said_to_be_is_no_guard():
    with (
        pytest.raises(AssertionError, match="no 'NO SUCH WORDS'"),
        Sql("claim", "CLAIM_NEXT", (("NO SUCH WORDS", ""),)).removed(),
    ):
        pass
