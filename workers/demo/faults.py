"""What goes wrong in the demonstration: causes with the stacks that Python would write, and their fingerprints."""

from dataclasses import dataclass
from pathlib import Path
from random import Random

from jobs.fingerprint import fingerprint
from jobs.states import FailureKind, Outcome, Reason

ENGINE = Path(__file__).resolve().parents[1]
PACKAGES = "/srv/tarefas/.venv/lib/python3.13/site-packages"
HANDLERS = "/srv/tarefas"
HEADER = "Traceback (most recent call last):\n"
Frame = tuple[str, int, str, str]  # path, line, function, code


@dataclass(frozen=True)
class Error:
    """One error of a cause, as it is stored."""

    kind: str
    message: str
    stack: str
    fingerprint: str


@dataclass(frozen=True)
class Fault:
    """A cause: of which type, its class and wording, where it was raised, and what it makes of the job."""

    type: str
    error: str
    wording: str
    frames: tuple[Frame, ...]
    attempts: int
    failure_kind: FailureKind = FailureKind.ERROR
    outcome: Outcome = Outcome.FAILED
    reason: Reason = Reason.ATTEMPTS_USED_UP
    seconds: float = 30.0

    def happen(self, rng: Random) -> Error:
        """One case of it."""
        message = self.wording.format(
            number=rng.randint(100, 999),
            column=rng.choice(("valor_liquido", "cnpj_filial", "data_baixa")),
            day=rng.randint(1, 28),
            worker="worker-05",
        )
        own = [frame for frame in self.frames if frame[0].startswith(HANDLERS) and PACKAGES not in frame[0]]
        place = f"{Path(own[-1][0]).stem}:{own[-1][2]}" if own else ""
        stack = ""
        if self.frames:
            told = "".join(
                f'  File "{path}", line {line}, in {name}\n    {code}\n' for path, line, name, code in self.frames
            )
            stack = f"{HEADER}{told}{self.error}: {message}\n"
        said = message if own else ""  # as the product has it for a worker that was lost
        return Error(self.error, message, stack, fingerprint(self.type, self.error, said, place))


def _engine(code: str) -> Frame:
    return (str(ENGINE / "execution.py"), 141, "_run_handler", code)


TIMEOUT = Fault(
    "integration.sync", "TimeoutError", "Sem resposta de crm.example.com em 30 s",
    (
        _engine("returned = await declared.call(context, value)"),
        (f"{HANDLERS}/tarefas/integracao.py", 41, "executar", "pagina = await buscar_pagina(ctx, params.pagina)"),
        (f"{HANDLERS}/tarefas/integracao.py", 88, "buscar_pagina", "resposta = await http.get(url, timeout=30)"),
        (f"{PACKAGES}/httpx/_client.py", 1768, "get", "return await self.request("),
        (f"{PACKAGES}/httpx/_client.py", 1540, "request", "return await self.send(request, auth=auth)"),
        (f"{PACKAGES}/httpx/_transports/default.py", 393, "handle_async_request", "with map_httpcore_exceptions():"),
        (f"{PACKAGES}/httpcore/_async/connection.py", 101, "handle_async_request", "raise exc"),
        (f"{PACKAGES}/anyio/_core/_tasks.py", 112, "__exit__", "raise TimeoutError"),
    ),
    attempts=5,
)  # fmt: skip
MISSING = Fault(
    "download.http", "PermanentJobError", "404 em https://files.example.com/notas/{number}.zip",
    (
        _engine("returned = await declared.call(context, value)"),
        (f"{HANDLERS}/tarefas/downloads.py", 57, "baixar", "conferir(resposta)"),
        (f"{HANDLERS}/tarefas/downloads.py", 33, "conferir", "raise PermanentJobError(recusa(resposta))"),
    ),
    attempts=1, failure_kind=FailureKind.PERMANENT, reason=Reason.PERMANENT, seconds=0.4,
)  # fmt: skip
COLUMN = Fault(
    "file.process", "ValueError", "Coluna '{column}' não existe em 'estoque-10{day:02}.csv'",
    (
        _engine("returned = declared.call(context, value)"),
        (f"{HANDLERS}/tarefas/arquivos.py", 74, "importar", "leitor = Planilha(caminho, COLUNAS)"),
        (f"{HANDLERS}/tarefas/planilha.py", 29, "__init__", "self._indices = [self._indice(nome) for nome in colunas]"),
        (f"{HANDLERS}/tarefas/planilha.py", 52, "_indice", "raise ValueError(texto) from None"),
    ),
    attempts=5, seconds=0.8,
)  # fmt: skip
LOST = Fault(
    "boletos.gerar", "WorkerLost", "O worker {worker} parou de responder.", (),
    attempts=3, failure_kind=FailureKind.WORKER_LOST, outcome=Outcome.WORKER_LOST, reason=Reason.LOST_TOO_OFTEN,
    seconds=75.0,
)  # fmt: skip
CAUSES = (TIMEOUT, MISSING, COLUMN, LOST)
