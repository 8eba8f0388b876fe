"""The benchmarks' arithmetic: medians, ratios of sides that took turns, verdicts, and the tables."""

import pytest

from benchmarks import report
from benchmarks.figure import Figure
from benchmarks.figures.upkeep import growth
from benchmarks.plan import FIGURES, chosen, words
from benchmarks.runner import Measured, compared, comparison_line, summary
from benchmarks.stats import Ratio, Spread, percentile
from benchmarks.targets import TARGETS, Comparison, Target


def measured(figure: str = "drain", **values: list[float]) -> Measured:
    """Samples of these values a turn, by side; a name's underscore stands for a hyphen."""
    samples = {
        side.replace("_", "-"): [
            {"value": value, "cpu_us": {"workers": 10.0 * turn}, "load": float(turn), "p99": 2 * value}
            for turn, value in enumerate(turns, 1)
        ]
        for side, turns in values.items()
    }
    return Measured(FIGURES[figure], samples)


def test_the_spread_is_the_median_between_the_least_and_the_most():
    assert Spread.of([3.0, 1.0, 10.0]) == Spread(3.0, 1.0, 10.0)
    assert Spread.of([4.0]) == Spread(4.0, 4.0, 4.0)


def test_the_ratio_is_that_of_the_medians_and_its_range_that_of_the_turns():
    ratio = Ratio.of([100.0, 300.0, 200.0], [50.0, 100.0, 200.0])

    assert ratio == Ratio(2.0, 1.0, 3.0)


def test_a_side_that_failed_after_its_first_turn_is_compared_by_that_one():
    assert Ratio.of([100.0], [50.0, 100.0, 200.0]) == Ratio(1.0, 2.0, 2.0)


def test_two_sides_that_were_never_measured_together_have_no_ratio():
    with pytest.raises(ValueError, match="no turn"):
        Ratio.of([], [1.0])


@pytest.mark.parametrize(("ratio", "tie"), [(1.0, True), (1.3, True), (0.76, True), (1.34, False), (0.74, False)])
def test_sides_that_differ_by_less_than_a_quarter_are_even(ratio, tie):
    assert Ratio(ratio, ratio, ratio).tie is tie


def test_a_percentile_lies_between_its_neighbours():
    assert percentile([float(value) for value in range(101)], 99) == 99.0
    assert percentile([0.0, 10.0], 50) == 5.0
    assert percentile([7.0], 99) == 7.0


@pytest.mark.parametrize(
    ("value", "less", "verdict"),
    [(0.9, False, "missed"), (1.0, False, "reached"), (2.0, False, "aimed"), (3.0, True, "missed")],
)
def test_a_target_is_missed_reached_or_as_aimed(value, less, verdict):
    assert Target("drain", "a", "b", 1.0, 2.0 if not less else 0.5, less).verdict(value) == verdict


@pytest.mark.parametrize(
    ("must", "aim", "verdict"), [(None, 1.0, "not aimed"), (None, None, "-"), (None, 0.4, "aimed")]
)
def test_where_nothing_must_be_reached_nothing_is_missed(must, aim, verdict):
    assert Target("drain", "a", "b", must, aim).verdict(0.5) == verdict


def test_every_target_is_about_a_figure_and_sides_that_it_has():
    strange = [
        target.name
        for target in TARGETS
        if target.figure not in FIGURES or {target.one, target.other or target.one} - set(FIGURES[target.figure].sides)
    ]

    assert strange == []


def test_every_side_says_in_words_what_it_is_and_what_it_keeps():
    assert {side for figure in FIGURES.values() for side in figure.sides} <= words().keys()
    assert all(all(pair) for pair in words().values())


def test_what_a_figure_shows_besides_hides_none_of_its_own_numbers():
    own = {"median", "least", "most", "turns", "unit", "side", "cpu_us", "load", "setup", "keeps"}

    assert [figure.name for figure in FIGURES.values() if own & set(figure.extra)] == []


def test_the_figures_compared_are_those_of_which_both_sides_were_measured():
    found = compared(measured(turno=[20.0, 40.0], celery_prefork=[10.0, 10.0]))

    assert [(one.target.name, one.value, one.verdict) for one in found] == [
        ("drain: turno / celery-prefork", 3.0, "reached")
    ]
    line = comparison_line(found[0])
    assert (line["least"], line["most"], line["tie"], line["must"]) == (2.0, 4.0, False, 2.0)


def test_sides_are_compared_by_the_processor_time_of_all_their_parts_too():
    both = measured(turno=[20.0], celery_prefork=[10.0])
    both.samples["celery-prefork"][0]["cpu_us"] = {"workers": 50.0, "rabbitmq": 30.0}

    [one] = compared(both)

    assert one.by_cpu == 8.0
    assert comparison_line(one)["by_cpu"] == 8.0


def test_a_side_without_processor_time_and_a_figure_of_time_are_not_compared_by_it():
    both = measured(turno=[20.0], celery_prefork=[10.0])
    del both.samples["celery-prefork"][0]["cpu_us"]

    assert [one.by_cpu for one in compared(both)] == [None]
    assert [one.by_cpu for one in compared(measured("latency", turno=[2.0], pgqueuer=[2.0]))] == [None]


def test_a_number_that_is_promised_as_such_needs_no_other_side():
    [one] = compared(measured("cancel", turno=[150.0, 170.0, 2000.0]))

    assert (one.value, one.verdict, one.ratio) == (170.0, "aimed", None)


def test_a_figures_line_has_the_medians_of_its_turns_and_the_worst_load():
    figure = Figure("latency", "words", "ms", ("turno",), FIGURES["latency"].run, True, ("p99",))
    samples = measured("latency", turno=[4.0, 8.0]).samples

    [line] = summary(Measured(figure, samples), {"turno": ("so", "all")})

    assert (line["median"], line["least"], line["most"], line["turns"]) == (6.0, 4.0, 8.0, 2)
    assert (line["p99"], line["cpu_us"], line["load"]) == (12.0, {"workers": 15.0}, 2.0)
    assert (line["setup"], line["keeps"]) == ("so", "all")


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0"), (0.01234, "0.0123"), (1.25, "1.25"), (12.345, "12.3"), (17_300.4, "17,300")]
)
def test_numbers_have_the_digits_that_matter(value, text):
    assert report.number(value) == text


def test_the_table_of_a_figure_has_a_row_a_side_and_leaves_out_what_was_not_measured_there():
    lines = summary(measured(turno=[20_000.0], celery_prefork=[5_000.0]), words())
    del lines[1]["cpu_us"]

    text = report.sides("drain: words", lines, ())

    assert text.splitlines() == [
        "drain: words",
        "side            median /s   least    most  workers µs/job  load",
        "--------------  ---------  ------  ------  --------------  ----",
        "turno              20,000  20,000  20,000            10.0     1",
        "celery-prefork      5,000   5,000   5,000                     1",
    ]


def test_the_table_of_targets_says_what_is_a_tie():
    tie = Comparison(Target("drain", "a", "b", 1.0, 2.0), 0.9, Ratio(0.9, 0.8, 1.1), 1.25)
    alone = Comparison(Target("cancel", "a", None, 1000.0, 200.0, less=True), 250.0)

    rows = report.reached([tie, alone]).splitlines()[2:]

    assert [row.split() for row in rows] == [
        ["drain:", "a", "/", "b", "0.9", "×", "0.8", "-", "1.1", "1.25", "×", "1", "×", "2", "×", "missed", "(tie)"],
        ["cancel:", "a", "250", "1,000", "200", "reached"],
    ]


def test_a_profile_leaves_out_the_other_ones_sides_and_never_a_peer():
    figure = FIGURES["drain"]

    embedded = chosen(figure, only=frozenset(), profile="embedded")
    clustered = chosen(figure, only=frozenset(), profile="cluster")

    assert "turno-cluster" not in embedded
    assert "turno" in embedded
    assert [name for name in clustered if name.startswith("turno")] == ["turno-cluster"]
    assert {"celery-prefork", "pgqueuer"} <= {*embedded} & {*clustered}


def test_sides_can_be_named_and_a_star_stands_for_all_of_turno():
    figure = FIGURES["drain"]

    assert chosen(figure, only=frozenset({"turno"}), profile="both") == ["turno"]
    starred = chosen(figure, only=frozenset({"turno*", "pgqueuer"}), profile="both")
    assert starred == ["turno", "turno-cluster", "turno-process", "turno-thread", "pgqueuer"]


@pytest.mark.parametrize(
    ("before", "after", "grown"),
    [
        ({1: 20.0, 2: 4.0}, {1: 21.5, 2: 4.0}, 1.5),
        ({1: 20.0, 2: 4.0}, {1: 20.0, 3: 4.0, 4: 4.0, 5: 4.0}, 0.0),
        ({1: 20.0, 2: 4.0, 3: 4.0}, {1: 20.0, 4: 5.0}, 2.0),
        ({1: 20.0}, {1: 20.0, 2: 4.0}, 0.0),
        ({1: 20.0, 2: 4.0}, {1: 20.0}, 0.0),
    ],
    ids=["who stayed", "more children", "fewer and larger ones", "the first child", "the last one went"],
)
def test_memory_has_grown_by_what_processes_need_more_and_not_by_how_many_children_there_are(before, after, grown):
    assert growth(before, after) == pytest.approx(grown)
