"""A schedule in words: the sentences of the screens, in both languages, and that no field is ever left out."""

import json
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest
from django.utils import translation
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from jobs.cron import BadCron, describe, parse
from jobs.cron.days import suits
from tests.cron.drawn import DAYS, DAYS_OF_WEEK, HOURS, MINUTES, MONTHS_OF_YEAR, SECONDS, drawings

CASES = json.loads((Path(__file__).parents[1] / "cases" / "cron.json").read_text("utf-8"))
SENTENCES = [
    ("0 */5 * * * *", "Every 5 minutes", "A cada 5 minutos"),
    ("0 30 7 * * 1-5", "At 07:30, Monday to Friday", "Às 07:30, de segunda a sexta"),
    ("0 0 3 * * *", "Every day at 03:00", "Todo dia às 03:00"),
    ("0 15 6,12,18 * * *", "At 06:15, 12:15 and 18:15", "Às 06:15, 12:15 e 18:15"),
    ("0 0 8 * * 1", "At 08:00, every Monday", "Às 08:00, toda segunda-feira"),
    ("0 0 6 1 * *", "At 06:00, on day 1 of each month", "Às 06:00, dia 1 de cada mês"),
    ("0 0 8-18 * * *", "Every hour, from 08:00 to 18:00", "De hora em hora, das 08:00 às 18:00"),
    ("* * * * *", "Every minute", "A cada minuto"),
    ("* * * * * *", "Every second", "A cada segundo"),
    ("*/20 * * * * *", "Every 20 seconds", "A cada 20 segundos"),
    ("@hourly", "Every hour", "De hora em hora"),
    ("30 * * * *", "Every hour, at minute 30", "De hora em hora, no minuto 30"),
    ("0,7,13 * * * *", "Every hour, at minutes 0, 7 and 13", "De hora em hora, nos minutos 0, 7 e 13"),
    ("30 */5 * * * *", "Every 5 minutes, at second 30", "A cada 5 minutos, no segundo 30"),
    ("0 */2 * * *", "Every 2 hours", "A cada 2 horas"),
    ("15 */2 * * *", "Every 2 hours, from 00:15 to 22:15", "A cada 2 horas, das 00:15 às 22:15"),
    ("0 */12 * * *", "At 00:00 and 12:00", "Às 00:00 e 12:00"),
    ("5/15 * * * *", "Every 15 minutes, from 00:05 to 23:50", "A cada 15 minutos, das 00:05 às 23:50"),
    (
        "*/7 * * * *",
        "Every 7 minutes, from minute 0 to 56 of each hour",
        "A cada 7 minutos, do minuto 0 ao 56 de cada hora",
    ),
    ("0 1 * * *", "Every day at 01:00", "Todo dia à 01:00"),
    ("0 1 * * 6", "At 01:00, every Saturday", "À 01:00, todo sábado"),
    ("*/5 1-4 * * *", "Every 5 minutes, from 01:00 to 04:55", "A cada 5 minutos, da 01:00 às 04:55"),
    ("0 22-1 * * *", "Every hour, from 22:00 to 01:00", "De hora em hora, das 22:00 à 01:00"),
    (
        "*/10 22-1 * * 1-5",
        "Every 10 minutes, from 00:00 to 01:50 and from 22:00 to 23:50, Monday to Friday",
        "A cada 10 minutos, das 00:00 à 01:50 e das 22:00 às 23:50, de segunda a sexta",
    ),
    (
        "*/10 8-11,14-17 * * 1-5",
        "Every 10 minutes, from 08:00 to 11:50 and from 14:00 to 17:50, Monday to Friday",
        "A cada 10 minutos, das 08:00 às 11:50 e das 14:00 às 17:50, de segunda a sexta",
    ),
    (
        "*/20 * 8-9 * * *",
        "Every 20 seconds, from 08:00:00 to 09:59:40",
        "A cada 20 segundos, das 08:00:00 às 09:59:40",
    ),
    ("15 30 23 * * *", "Every day at 23:30:15", "Todo dia às 23:30:15"),
    ("0,7,13 8-18 * * *", "At minutes 0, 7 and 13 of hours 8 to 18", "Nos minutos 0, 7 e 13 das horas 8 a 18"),
    (
        "*/5 */2 * * *",
        "Every 5 minutes, in hours 0 to 22 in steps of 2",
        "A cada 5 minutos, nas horas 0 a 22 de 2 em 2",
    ),
    (
        "1,2,5 * 8 * * *",
        "At seconds 1, 2 and 5 of each minute, in hour 8",
        "Nos segundos 1, 2 e 5 de cada minuto, na hora 8",
    ),
    ("0 8 * * 0", "At 08:00, every Sunday", "Às 08:00, todo domingo"),
    ("0 8 * * 6,0", "At 08:00, on Saturdays and Sundays", "Às 08:00, nos sábados e domingos"),
    ("0 8 * * 1,3,5", "At 08:00, on Mondays, Wednesdays and Fridays", "Às 08:00, nas segundas, quartas e sextas"),
    ("0 8 * * FRI-MON", "At 08:00, Friday to Monday", "Às 08:00, de sexta a segunda"),
    ("0 0 1,15 * *", "At 00:00, on days 1 and 15 of each month", "Às 00:00, dias 1 e 15 de cada mês"),
    ("0 0 1-7 * *", "At 00:00, on days 1 to 7 of each month", "Às 00:00, dias 1 a 7 de cada mês"),
    (
        "0 0 */2 * *",
        "At 00:00, every 2 days from day 1 of each month",
        "Às 00:00, a cada 2 dias a partir do dia 1 de cada mês",
    ),
    ("0 0 L * *", "At 00:00, on the last day of each month", "Às 00:00, no último dia de cada mês"),
    (
        "0 5 LW * *",
        "At 05:00, on the last weekday (Monday to Friday) of each month",
        "Às 05:00, no último dia útil (segunda a sexta) de cada mês",
    ),
    (
        "0 0 15W * *",
        "At 00:00, on the weekday (Monday to Friday) nearest to day 15 of each month",
        "Às 00:00, no dia útil (segunda a sexta) mais próximo do dia 15 de cada mês",
    ),
    ("0 0 * * 5L", "At 00:00, on the last Friday of each month", "Às 00:00, na última sexta-feira de cada mês"),
    ("0 0 * * 6#2", "At 00:00, on the second Saturday of each month", "Às 00:00, no segundo sábado de cada mês"),
    (
        "0 0 * * 0,6#1",
        "At 00:00, every Sunday and on the first Saturday of each month",
        "Às 00:00, todo domingo e no primeiro sábado de cada mês",
    ),
    (
        "0 0 13 1,7 5",
        "At 00:00, on day 13 of each month or every Friday, only in January and July",
        "Às 00:00, dia 13 de cada mês ou toda sexta-feira, só em janeiro e julho",
    ),
    (
        "0 0 */2 * 1",
        "At 00:00, every 2 days from day 1 of each month and every Monday, when both coincide",
        "Às 00:00, a cada 2 dias a partir do dia 1 de cada mês e toda segunda-feira, quando coincidem",
    ),
    ("0 0 1 1,7 *", "At 00:00, on day 1 of January and July", "Às 00:00, dia 1 de janeiro e julho"),
    (
        "0 0 1 4-9 *",
        "At 00:00, on day 1 of each month, only from April to September",
        "Às 00:00, dia 1 de cada mês, só de abril a setembro",
    ),
    ("0 3 * 1 *", "Every day at 03:00, in January", "Todo dia às 03:00, em janeiro"),
    ("* * * 6-8 *", "Every minute, from June to August", "A cada minuto, de junho a agosto"),
    ("0 0 1-31 * 5", "Every day at 00:00", "Todo dia às 00:00"),
]


def said(expression, language="en", **how):
    with translation.override(language):
        return describe(parse(expression, "UTC"), **how)


@pytest.mark.parametrize(("expression", "english", "portuguese"), SENTENCES, ids=lambda value: value.replace(" ", "_"))
def test_it_is_said_as_people_say_it(expression, english, portuguese):
    assert said(expression) == english
    assert said(expression, "pt-br") == portuguese


@pytest.mark.parametrize("case", CASES["cases"], ids=lambda case: case["id"])
def test_each_agreed_case_has_words_in_both_languages(case):
    english, portuguese = said(case["expression"]), said(case["expression"], "pt-br")

    assert english[0] in "AE"
    assert portuguese[0] in "AÀDNT"
    assert "%" not in english + portuguese


def test_the_editor_shows_seconds():
    assert said("0 30 7 * * 1-5", seconds=True) == "At 07:30:00, Monday to Friday"
    assert said("0 */5 * * * *", seconds=True) == "Every 5 minutes"


YEARS = [date(2023, 1, 1) + timedelta(days=number) for number in range(4 * 365)]


def meaning(schedule):
    """Its times of the day, and its days of four years."""
    expression = schedule.expression
    times = (expression.second.values, expression.minute.values, expression.hour.values)
    return times, [day for day in YEARS if suits(expression, day)]


@settings(max_examples=300)
@given(
    drawing=drawings(),
    other=st.one_of(
        st.tuples(st.just("second"), SECONDS),
        st.tuples(st.just("minute"), MINUTES),
        st.tuples(st.just("hour"), HOURS),
        st.tuples(st.just("day"), DAYS),
        st.tuples(st.just("month"), MONTHS_OF_YEAR),
        st.tuples(st.just("weekday"), DAYS_OF_WEEK),
    ),
)
def test_two_schedules_that_differ_in_one_field_are_told_apart_by_their_words(drawing, other):
    """So each field that leaves something out is told, in full."""
    field, value = other
    try:
        one, changed = (parse(each.text, "UTC") for each in (drawing, replace(drawing, **{field: value})))
    except BadCron:
        assume(False)

    if describe(one) == describe(changed):
        assert meaning(one) == meaning(changed)
