"""Every guard of the protocol has a law that shows it, and every law shows a guard: neither list drifts."""

from collections import Counter
from pathlib import Path

import pytest

from tests.laws.protocol import ALONE, EVERY, IN_PAIRS, Sentence
from tests.laws.table import LAWS

ROOT = Path(__file__).parents[2]
BY_NAME = {law.guard: law for law in LAWS}


def is_test(name: str) -> bool:
    path, _, function = name.partition("::")
    return bool(function) and f"def {function}(" in (ROOT / path).read_text()


def test_no_two_laws_have_one_name():
    assert [name for name, count in Counter(law.guard for law in LAWS).items() if count > 1] == []


@pytest.mark.parametrize("sentence", EVERY, ids=lambda sentence: sentence.text)
def test_a_guard_of_the_protocol_is_shown_by_laws_that_there_are(sentence: Sentence):
    assert sentence.shown_by
    assert [name for name in sentence.shown_by if name not in BY_NAME and not is_test(name)] == []


def test_every_law_shows_a_guard_of_the_protocol():
    shown = {name for sentence in EVERY for name in sentence.shown_by}

    assert sorted(set(BY_NAME) - shown) == []


@pytest.mark.parametrize("sentence", ALONE, ids=lambda sentence: sentence.text)
def test_what_is_needed_alone_has_a_row_of_one_layer(sentence: Sentence):
    laws = [BY_NAME[name] for name in sentence.shown_by if name in BY_NAME]

    assert any(len(law.layers) == 1 for law in laws) or any(is_test(name) for name in sentence.shown_by if "::" in name)


@pytest.mark.parametrize("sentence", IN_PAIRS, ids=lambda sentence: sentence.text)
def test_what_is_needed_in_pairs_has_a_row_of_several_layers(sentence: Sentence):
    assert any(len(BY_NAME[name].layers) > 1 for name in sentence.shown_by)
