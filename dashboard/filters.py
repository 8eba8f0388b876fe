"""The list's filter as its address says it, and back: one reading for the list, its counts, export and bulk acts.

No query string is an error: an unknown parameter is ignored, a value that makes no sense is said in words beside its
field and asks nothing. Only an act refuses it: what is half understood must not be acted on.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

from django.http import QueryDict
from django.utils.translation import gettext as _

from dashboard.reading import Reading, refuse
from jobs.bounds import PRIORITIES
from jobs.queries.cursor import NEWEST, OLDEST, Cursor
from jobs.queries.jobfilter import JobFilter
from jobs.states import State, Waiting

STATES = {
    "fila": State.ENQUEUED,
    "executando": State.PROCESSING,
    "agendada": State.SCHEDULED,
    "sucesso": State.SUCCEEDED,
    "falha": State.FAILED,
    "cancelada": State.CANCELLED,
}
# What a job waits for, as an address says it; in the order of a choice.
WAITS = {
    "chave": Waiting.CONCURRENCY_KEY,
    "limite": Waiting.TYPE_LIMIT,
    "ritmo": Waiting.RATE,
    "pausa": Waiting.PAUSE,
    "pais": Waiting.PARENTS,
    "disjuntor": Waiting.CIRCUIT,
    "desconhecido": Waiting.UNKNOWN_TYPE,
    "hora": Waiting.DUE,
    "repetir": Waiting.RETRY,
    "adiada": Waiting.SNOOZE,
    "trava": Waiting.LOCK,
}
# In seconds.
WINDOWS = {"15min": 900, "1h": 3600, "24h": 86_400, "7d": 7 * 86_400, "30d": 30 * 86_400}
KEYS, PAYLOAD = "chaves", "payload"
OLDEST_FIRST = "antigas"
MOST_ATTEMPTS = 100
EARLIEST = datetime.min.replace(tzinfo=UTC)
# As they stand in an address.
NARROWING = (
    "busca", "em", "tipo", "fila", "etiqueta", "periodo", "de", "ate", "terminou", "worker", "tentativas",
    "prioridade", "erro", "origem", "recorrente", "espera", "chave",
)  # fmt: skip
NAMES = ("estado", *NARROWING, "ordem", "cursor")


@dataclass(frozen=True, slots=True)
class Asked:
    """What an address asks for. `values`: each understood parameter as it stands; `errors`: what is wrong, by name."""

    filter: JobFilter
    values: dict[str, str]
    errors: dict[str, str]
    order: str = NEWEST
    cursor: Cursor | None = None

    def query(self, **changes: str | None) -> str:
        """The query string of this filter with some parameters changed (None: without); the page is not kept."""
        kept = {**self.values, "cursor": None, **changes}
        return urlencode([(name, kept[name]) for name in NAMES if kept.get(name)])

    @property
    def key(self) -> str:
        """What stands for the filter whatever the page and the order: a selection belongs to it."""
        return self.query(ordem=None)

    @property
    def narrowed(self) -> bool:
        """Anything is asked besides the state."""
        return any(name in self.values for name in NARROWING)


def parse(query: QueryDict | str, as_of: datetime) -> Asked:
    """The filter that a query string asks for; windows such as "the last 24 h" end at `as_of`. Raises nothing."""
    data = QueryDict(query) if isinstance(query, str) else query
    read = Reading(data)

    def since(name: str) -> datetime | None:
        seconds = read.one_of(name, WINDOWS)
        try:
            return None if seconds is None else as_of - timedelta(seconds=seconds)
        except OverflowError:  # a cut-off at the beginning of the calendar
            return EARLIEST

    window, start, end = since("periodo"), read.instant("de"), read.instant("ate")
    if start is not None and end is not None and end <= start:
        read.wrong("ate", _("The end must come after the start."))
        end = None
    if window is not None and (start is not None or end is not None):
        read.values.pop("periodo", None)
        window = None
    search, where = read.text("busca"), read.one_of("em", {KEYS: KEYS, PAYLOAD: PAYLOAD})
    if search is None:
        read.values.pop("em", None)
    shown = read.one_of("estado", STATES)
    wanted = JobFilter(
        shown=None if shown is None else str(shown),
        type=read.type("tipo"),
        queue=read.text("fila"),
        tag=read.text("etiqueta"),
        keys=search if where != PAYLOAD else None,
        text=search if where == PAYLOAD else None,
        created_from=window or start,
        created_to=end,
        finished_from=since("terminou"),
        worker=read.text("worker"),
        attempts=read.whole("tentativas", 0, MOST_ATTEMPTS),
        priority=read.whole("prioridade", *PRIORITIES),
        error_type=read.text("erro"),
        origin=read.text("origem"),
        recurring=read.identity("recorrente"),
        waiting=read.one_of("espera", {name: str(waiting) for name, waiting in WAITS.items()}),
        key=read.text("chave"),
    )
    order = OLDEST if read.one_of("ordem", {OLDEST_FIRST: OLDEST, "novas": NEWEST}) == OLDEST else NEWEST
    return Asked(wanted, read.values, read.errors, order, _cursor(data))


def _cursor(data: QueryDict) -> Cursor | None:
    """A page that does not exist is the first one."""
    try:
        return Cursor.parse(data.get("cursor", ""))
    except ValueError:
        return None


def job_filter(query: str, before: datetime) -> JobFilter:
    """The filter of an act over all that match: jobs made before that instant. Raises Invalid for any bad value."""
    asked = parse(query, before)
    refuse(query, NAMES, asked.errors)
    end = asked.filter.created_to
    return replace(asked.filter, created_to=before if end is None else min(end, before))


def first_after(instant: datetime, order: str) -> datetime:
    """Where a list in `order` begins that is to start at an instant."""
    try:
        return instant + timedelta(milliseconds=1) if order == NEWEST else instant
    except OverflowError:  # the last instant of the calendar
        return instant
