"""What the demonstration's installation does now: six workers or many, what runs in their slots, what waits."""

from random import Random

from jobs.conf import conf
from jobs.states import Outcome, Reason, State, Waiting
from jobs.version import VERSION
from workers.demo.book import Book, Row, Seat, Turn
from workers.demo.faults import TIMEOUT, Error
from workers.demo.kinds import BY_NAME, KINDS, any_kind
from workers.demo.moments import Moments
from workers.demo.past import Past

SMALL = {"critical": 2, "default": 4, "reports": 2}
# name, host, queues, state, seconds since its sign of life, since its start
Process = tuple[str, str, dict[str, int], str, float, float]
SIX: tuple[Process, ...] = (
    ("worker-01", "vm-a1", SMALL, "Online", 2, 22_320),
    ("worker-02", "vm-a1", SMALL, "Online", 1, 22_300),
    ("worker-03", "vm-a2", SMALL, "Online", 3, 22_260),
    ("worker-04", "vm-b1", SMALL, "Draining", 3, 187_200),
    ("worker-05", "vm-b2", SMALL, "Online", 26, 187_000),
    ("worker-06", "vm-c1", {"default": 4}, "Online", 2, 2_460),
)
# worker, queue, slot, type, stage, progress, seconds
RUNNING = (
    (5, "default", 1, "integration.sync", "Página 22 de 40", 55, 171),
    (5, "default", 2, "boletos.gerar", "Boleto 112/400", 28, 94),
    (4, "default", 1, "file.process", "Gravando lote 9", 91, 212),
    (4, "default", 3, "download.http", "Baixando 14 MB", 58, 37),
    (1, "critical", 1, "notification.send", "Lote 6 de 8", 75, 4),
    (1, "default", 1, "file.process", "Linha 48.210", 54, 84),
    (1, "default", 2, "integration.sync", "Página 12 de 40", 30, 22),
    (1, "default", 3, "boletos.gerar", "Boleto 182/400", 45, 191),
    (1, "default", 4, "download.http", "Baixando 3 MB", 21, 9),
    (1, "reports", 1, "report.generate", "Montando o PDF", 62, 84),
    (1, "reports", 2, "report.generate", "Somando filiais", 88, 1268),
    (2, "critical", 1, "notification.send", "Lote 3 de 8", 38, 2),
    (2, "critical", 2, "integration.sync", "Conferindo saldo", 0, 11),
    (2, "default", 1, "boletos.gerar", "Boleto 371/400", 93, 402),
    (2, "default", 2, "file.process", "Validando colunas", 25, 31),
    (2, "default", 4, "raspagem.pagina", "Página 2 de 5", 40, 48),
    (2, "reports", 1, "report.generate", "Lendo vendas", 68, 140),
    (3, "critical", 2, "notification.send", "Lote 1 de 8", 12, 1),
    (3, "default", 1, "download.http", "Conferindo hash", 96, 63),
    (3, "default", 3, "integration.sync", "Página 3 de 18", 17, 19),
    (3, "default", 4, "file.process", "Linha 2.044", 8, 7),
    (3, "reports", 1, "report.generate", "Lendo vendas", 24, 36),
    (6, "default", 1, "raspagem.pagina", "Abrindo processo", 0, 26),
    (6, "default", 2, "raspagem.pagina", "Página 4 de 5", 80, 71),
    (6, "default", 4, "download.http", "Baixando 8 MB", 33, 15),
)
TOLD = (1, "reports", 1)  # the job whose log is told
LOST_LEASE = 12.0  # seconds: what the silent worker's jobs have left


def worker_row(moments: Moments, rng: Random, process: Process) -> Row:
    """The row of a worker process on a machine that no real worker runs on."""
    name, host, queues, state, seen, started = process
    return {
        "id": moments.id_at(moments.ago(started)), "name": name, "host": host, "boot_id": f"demo-{host}",
        "pid_namespace": "demo", "pid": rng.randint(900, 30_000), "pid_started": str(rng.randint(10**6, 10**8)),
        "version": VERSION, "queues": dict(queues), "types": sorted(BY_NAME), "state": state,
        "started_at": moments.ago(started), "seen_at": moments.ago(seen), "problems": [],
    }  # fmt: skip


def lease_left(worker: Row, book: Book) -> float:
    """Seconds of lease of what the worker runs: little where it gives no sign of life."""
    silent = (book.moments.now - worker["seen_at"]).total_seconds() > conf().worker.silent_after
    return LOST_LEASE if silent else book.rng.uniform(50, 60)


def six(moments: Moments, rng: Random) -> tuple[list[Row], dict[str, str]]:
    """Six workers: one silent with two lost jobs, one draining; every kind in its own queue."""
    return [worker_row(moments, rng, worker) for worker in SIX], {}


def run_in_six(book: Book, workers: list[Row], past: Past) -> None:
    """The 25 running jobs."""
    for place, queue, slot, name, stage, progress, elapsed in RUNNING:
        worker = workers[place - 1]
        kind = past.kind(name)
        row = book.job(kind, waited=elapsed + 3, queue=queue)
        book.claim(row, Seat(worker, slot), elapsed, lease_left(worker, book), progress=progress, stage=stage)
        if (place, queue, slot) == TOLD:
            row.update(origin="fechamento-mensal", tags=["fechamento", "filial-7"])
            book.lines(
                row,
                (0.1, "info", "Etapa: Lendo vendas"),
                (19.3, "info", "412.902 linhas lidas em 19,3 s"),
                (31.0, "info", "Etapa: Somando filiais"),
                (37.2, "warning", "Filial 7 sem fechamento de 30/09; usei o parcial"),
                (60.8, "info", "4 filiais somadas"),
                (60.9, "info", "Etapa: Montando o PDF"),
                (75.1, "info", "Página 20 de 64"),
                (83.6, "info", "Página 40 de 64"),
            )


def paused(book: Book) -> None:
    """Somebody paused the reports."""
    book.add("pauses", scope="queue", value="reports", reason="Manutenção da impressora", paused_by="key",
             created_at=book.moments.ago(712))  # fmt: skip


def waiting(book: Book, past: Past, *, queued: int, scheduled: int, reports: int) -> None:
    """What waits for a slot, for an instant (some after a failure), behind the paused queue, or for its type."""
    rng = book.rng
    others = [kind for kind in KINDS if kind.name != "report.generate"]
    for _ in range(queued):
        kind = past.kind(rng.choices(others, [kind.share for kind in others])[0].name)
        urgent = kind.name == "notification.send" and rng.random() < 0.2
        book.job(kind, waited=rng.uniform(1, 42), priority=10 if urgent else 0)
    for number in range(reports):
        book.job(past.kind("report.generate"), waited=712 - number * 6.9)
    for number in range(scheduled):
        _scheduled(book, past, 14 + number * 37 + rng.uniform(0, 20), retried=number % 9 == 0)
    row = book.job(past.kind("file.process"), waited=1500, type="planilha.conferir")
    row.update(state=State.SCHEDULED, waiting_for=Waiting.UNKNOWN_TYPE, gate="planilha.conferir", dispatch_id=None)
    book.step(row, State.ENQUEUED, State.SCHEDULED, book.moments.ago(1498), Reason.PARKED)


def _scheduled(book: Book, past: Past, ahead: float, *, retried: bool) -> None:
    rng = book.rng
    if retried:
        kind = past.kind("integration.sync")
        error: Error = TIMEOUT.happen(rng)
        delay = ahead + rng.uniform(1, 30)
        turn = Turn(
            past.seat(kind), rng.uniform(0.1, 2), 30.02, Outcome.FAILED, State.SCHEDULED, Reason.RETRY,
            delay=delay, error=error,
        )  # fmt: skip
        book.job(kind, [turn], created_at=book.moments.ago(turn.wait + turn.duration + delay - ahead))
        return
    kind = past.kind(any_kind(rng).name)
    created = book.moments.ago(rng.uniform(60, 50_000))
    row = book.job(kind, created_at=created)
    run_at = book.moments.ago(-ahead)
    row.update(state=State.SCHEDULED, waiting_for=Waiting.DUE, run_at=run_at, not_before=run_at, dispatch_id=None)
    row["enqueued_at"] = None
    book.born_scheduled(row)


def many(moments: Moments, rng: Random, count: int) -> tuple[list[Row], dict[str, str]]:
    """`count` workers of three sorts (40 small, 12 with 16 slots, 4 with 64 of every 56); the queue of each kind."""
    workers = []
    big = max(1, round(count * 4 / 56))
    middle = max(1, round(count * 12 / 56))
    sorts = (
        ("geral", SMALL, count - big - middle),
        ("arquivos", {"default": 8, "files": 8}, middle),
        ("raspagem", {"crawlers": 64}, big),
    )
    for name, queues, number in sorts:
        for place in range(1, number + 1):
            silent, draining = (name, place) == ("geral", 17), (name, place) in DRAINING
            state = "Draining" if draining else "Online"
            seen = 26 if silent else rng.uniform(0.5, 4)
            host = f"vm-{name[0]}{place % 9 + 1}"
            workers.append(worker_row(moments, rng, (f"{name}-{place:02}", host, queues, state, seen, 90_000)))
    return workers, {"raspagem.pagina": "crawlers", "file.process": "files"}


DRAINING = {("geral", 9), ("geral", 30), ("arquivos", 5)}


def run_in_many(book: Book, workers: list[Row], past: Past) -> None:
    """Three of four slots are busy."""
    rng: Random = book.rng
    by_queue: dict[str, list[str]] = {}
    for kind in KINDS:
        by_queue.setdefault(past.kind(kind.name).queue, []).append(kind.name)
    for worker in workers:
        full = 0.35 if worker["state"] == "Draining" else 0.77
        for queue, slots in worker["queues"].items():
            for slot in range(1, slots + 1):
                if rng.random() < full:
                    kind = past.kind(rng.choice(by_queue[queue]))
                    done = 0.0 if rng.random() < 0.12 else rng.random()
                    elapsed = kind.usual * rng.uniform(0.1, 1.3)
                    row = book.job(kind, waited=elapsed + rng.uniform(0.2, 4))
                    book.claim(
                        row, Seat(worker, slot), elapsed, lease_left(worker, book), progress=round(done * 100),
                        stage=kind.stage(rng, done),
                    )  # fmt: skip
