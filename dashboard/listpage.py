"""What the list of jobs shows around its rows: tabs, fields, chips, pages, and what was not found."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from difflib import get_close_matches
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from dashboard import jobrows, reads, selectwords
from dashboard.filters import KEYS, OLDEST_FIRST, PAYLOAD, STATES, WAITS, Asked, parse
from dashboard.shared import PATIENT, shared
from dashboard.templatetags.shown import word
from dashboard.zone import label
from jobs import queries, wording
from jobs.queries.cursor import NEWEST, OLDEST, first_id_of
from jobs.queries.joblist import PAGE, JobList
from jobs.queries.schedulelist import schedule_rows
from jobs.registry import catalogue
from jobs.states import State, Waiting

SHARED_TIME = 0.4  # seconds that the counts for all viewers together may take
WINDOW_WORDS: dict[str, Promise] = {
    "15min": gettext_lazy("Last 15 minutes"),
    "1h": gettext_lazy("Last hour"),
    "24h": gettext_lazy("Last 24 h"),
    "7d": gettext_lazy("7 days"),
    "30d": gettext_lazy("30 days"),
}
INSTANTS: dict[str, Promise] = {
    Waiting.DUE: gettext_lazy("waits for its instant"),
    Waiting.RETRY: gettext_lazy("waits before another attempt"),
    Waiting.SNOOZE: gettext_lazy("put off by its handler"),
    Waiting.LOCK: gettext_lazy("its lock is held elsewhere"),
}
WAIT_WORDS = {name: {**jobrows.GATES, **INSTANTS}[waiting] for name, waiting in WAITS.items()}
CHIPS: dict[str, Promise] = {
    "etiqueta": gettext_lazy("tag"),
    "worker": gettext_lazy("worker"),
    "tentativas": gettext_lazy("attempts from"),
    "prioridade": gettext_lazy("priority from"),
    "erro": gettext_lazy("error"),
    "origem": gettext_lazy("origin"),
    "recorrente": gettext_lazy("schedule"),
    "tipo": gettext_lazy("type"),
    "fila": gettext_lazy("queue"),
    "chave": gettext_lazy("key"),
    "de": gettext_lazy("from"),
    "ate": gettext_lazy("to"),
}


@dataclass(frozen=True, slots=True)
class Tab:
    """A state (None: all) with its count in words, empty where it is not known."""

    state: State | None
    query: str
    count: str
    here: bool


@dataclass(frozen=True, slots=True)
class Chip:
    """A part of the filter in words, and the query without it."""

    text: str
    without: str


def words(count: queries.Count) -> str:
    """A count in words; an unknown one says nothing."""
    return "" if count.number is None else wording.count(count.number, count.estimated)


def _counts(asked: Asked) -> dict[State, queries.Count]:
    if not asked.narrowed:
        return shared("job-tabs", PATIENT, lambda: queries.tabs(queries.JobFilter(), seconds=SHARED_TIME))
    return queries.tabs(asked.filter)


def tabs(asked: Asked, known: int | None = None) -> list[Tab]:
    """The tabs. `known`: the whole number of jobs under the current one, when the page holds them all."""
    counts = _counts(asked)
    here = State(asked.filter.shown) if asked.filter.shown else None
    if known is not None and here is not None:
        counts = {**counts, here: queries.Count(known)}
    whole = queries.Count(known) if known is not None and here is None else queries.total(list(counts.values()))
    if whole.number is None:
        whole = queries.guess(replace(asked.filter, shown=None))
    found = [Tab(None, asked.query(estado=None), words(whole), here is None)]
    for name, state in STATES.items():
        found.append(Tab(state, asked.query(estado=name), words(counts[state]), here == state))
    return found


def chips(asked: Asked) -> list[Chip]:
    """Each part of the filter besides the state, to be taken away on its own."""
    found = []
    for name, value in asked.values.items():
        if name in {"estado", "em", "ordem"}:
            continue
        text = value
        if name == "periodo":
            text = str(WINDOW_WORDS[value])
        elif name == "espera":
            text = str(WAIT_WORDS[value])
        elif name == "terminou":
            text = _("finished: %(window)s") % {"window": WINDOW_WORDS[value]}
        elif name == "recorrente" and asked.filter.recurring is not None:
            named = schedule_rows([asked.filter.recurring])  # none where it has been deleted
            text = f"{CHIPS[name]} {named[0].name if named else value}"
        elif name in CHIPS:
            text = f"{CHIPS[name]} {value.replace('T', ' ') if name in {'de', 'ate'} else value}"
        without: dict[str, str | None] = {name: None, **({"em": None} if name == "busca" else {})}
        found.append(Chip(text, asked.query(**without)))
    return found


def spoken(asked: Asked) -> str:
    """The filter as a list of words, for the question before an act over all that match."""
    state = [word(asked.filter.shown)] if asked.filter.shown else []
    return ", ".join([*state, *(chip.text for chip in chips(asked))])


def known_types(asked: Asked) -> list[str]:
    """The types to choose from: registered or seen, and the one that is asked for."""
    names = {row.name for row in shared("job-types", 10.0, queries.job_types)}
    return sorted(names | ({asked.filter.type} if asked.filter.type else set()))


def known_queues(asked: Asked) -> list[str]:
    """The queues to choose from: served by workers, with waiting jobs, and the one that is asked for."""
    served = {queue for worker in reads.fleet() for queue in worker.queues}
    deep = {depth.queue for depth in reads.depths()}
    return sorted(served | deep | ({asked.filter.queue} if asked.filter.queue else set()))


def near_types(asked: Asked) -> list[tuple[str, str]]:
    """Types that are called like the one that nobody knows, each with its query."""
    wanted = asked.filter.type or asked.values.get("busca", "")
    known = {row.name for row in shared("job-types", 10.0, queries.job_types)} | set(catalogue.names())
    if not wanted or wanted in known:
        return []
    near = get_close_matches(wanted.lower()[:100], sorted(known)[:2000], n=3)
    return [(name, asked.query(tipo=name, busca=None, em=None)) for name in near]


def context(asked: Asked, found: JobList, as_of: datetime) -> dict[str, Any]:
    """Everything that the page shows."""
    first = asked.cursor is None
    # All that match are on this page: then their number is known, whatever counting took.
    known = len(found.ids) if first and found.complete and not found.older and not found.newer else None
    all_tabs = tabs(asked, known)
    lines = jobrows.rows(queries.rows(found.ids), found.ids)
    current = next(tab for tab in all_tabs if tab.here)
    here = f"{reverse('tarefas')}?{asked.query()}"
    return {
        "asked": asked,
        "rows": lines,
        "ids": ",".join(id_.hex for id_ in found.ids),
        "tabs": all_tabs,
        "total": current.count,
        "chips": chips(asked),
        "spoken": spoken(asked),
        "found": found,
        "looked": wording.number(found.looked) if found.looked and not found.complete else "",
        "newer": _neighbour(asked, found.newer),
        "older": _neighbour(asked, found.older),
        "onward": _neighbour(asked, found.older if asked.order == NEWEST else found.newer),
        "news": _news(asked, found, as_of) if first and asked.order == NEWEST else "",
        "oldest_first": asked.order == OLDEST,
        "turned": asked.query(ordem=None if asked.order == OLDEST else OLDEST_FIRST),
        "plain": asked.query(),
        "here": here,
        "kept_by_bar": _kept(asked, without=("busca", "em", "tipo", "fila", "periodo")),
        "kept_by_dialog": _kept(asked, only=("estado", "busca", "em", "ordem", "recorrente", "terminou")),
        "script": selectwords.script(),
        "types": known_types(asked),
        "queues": known_queues(asked),
        "workers": _workers(asked),
        "windows": list(WINDOW_WORDS.items()),
        "waits": list(WAIT_WORDS.items()),
        "zone": label(timezone.get_current_timezone()),
        "near": near_types(asked) if not lines else [],
        "by_payload": asked.values.get("em") == PAYLOAD,
        "other_place": asked.query(em=KEYS if asked.values.get("em") == PAYLOAD else PAYLOAD),
        "per_page": PAGE,
        "wider": asked.query(periodo="30d", de=None, ate=None) if _short_window(asked) else "",
        **_outside(asked, as_of, wanted=not lines and found.complete),
        "nothing_yet": not lines and not asked.values and first,
    }


def _kept(asked: Asked, only: Sequence[str] | None = None, without: Sequence[str] = ()) -> list[tuple[str, str]]:
    """The parameters that a form hands on as they are."""
    return [(n, v) for n, v in asked.values.items() if (only is None or n in only) and n not in without]


def _workers(asked: Asked) -> list[str]:
    names = {worker.name for worker in reads.fleet() if worker.live}
    return sorted(names | ({asked.filter.worker} if asked.filter.worker else set()))


def _neighbour(asked: Asked, cursor: queries.Cursor | None) -> str:
    if cursor is None:
        return ""
    query = asked.query()
    return f"{query}&cursor={cursor}" if query else f"cursor={cursor}"


def _news(asked: Asked, found: JobList, as_of: datetime) -> str:
    """The query of the offer of new rows: which ids are seen, and above which id another one is new.

    Of a page that ended before its filter did, anything above its last row. Where rows are rare, or all are shown,
    anything that came after the page: to look again for what was read row by row would cost as much each time.
    """
    whole = not found.older and found.complete
    if found.ids and not whole and not found.looked:
        floor = found.ids[-1]
    else:
        floor = first_id_of(int(as_of.timestamp() * 1000))
        if not found.looked and not asked.filter.text:
            floor = first_id_of(0)
    seen = ",".join(id_.hex for id_ in found.ids)
    return f"{asked.query()}&{urlencode({'desde': floor.hex, 'vistas': seen}, safe=',')}".removeprefix("&")


def _outside(asked: Asked, as_of: datetime, *, wanted: bool) -> dict[str, Any]:
    """How many would match without the window; nothing where it can't be counted in a moment."""
    if not wanted or not {"periodo", "de", "ate"} & asked.values.keys():
        return {}
    count = queries.count(parse(asked.query(periodo=None, de=None, ate=None), as_of).filter)
    return {"outside": count, "outside_words": words(count)} if count.number else {}


def _short_window(asked: Asked) -> bool:
    return asked.values.get("periodo") not in {None, "30d"} or "de" in asked.values or "ate" in asked.values
