"""The kinds of job that the demonstration runs: what they are given, how long they take, what they say on the way."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

SOURCES = ("crm", "erp", "loja", "frete")
FILES = ("vendas", "estoque", "notas", "extrato", "remessa")
CHANNELS = ("email", "email", "sms", "push")


@dataclass(frozen=True)
class Kind:
    """A type: its queue, its share of all jobs, its usual duration (s), its payload, its stage at a share done."""

    name: str
    queue: str
    share: float
    usual: float
    payload: Callable[[Random], dict[str, Any]]
    stage: Callable[[Random, float], str]
    result: Callable[[Random], dict[str, Any]]
    progress: bool = True

    def duration(self, rng: Random) -> float:
        """Seconds of one execution: most near the usual, some far above."""
        return round(self.usual * rng.lognormvariate(0, 0.55), 3)


def _steps(*names: str) -> Callable[[Random, float], str]:
    return lambda _rng, done: names[min(len(names) - 1, int(done * len(names)))]


def _counted(text: str, most: int) -> Callable[[Random, float], str]:
    return lambda _rng, done: text.format(n=max(1, round(done * most)), most=most)


def _day(rng: Random) -> str:
    return f"{rng.randint(1, 12):02}{rng.randint(1, 28):02}"


def _month(rng: Random) -> str:
    return f"2026-{rng.randint(1, 12):02}"


KINDS = (
    Kind(
        "notification.send", "critical", 0.34, 8.0,
        lambda rng: {"canal": rng.choice(CHANNELS), "lote": rng.randint(1, 40), "pedido": rng.randint(1000, 99_999)},
        _counted("Lote {n} de {most}", 8),
        lambda rng: {"enviadas": rng.randint(20, 200)},
    ),
    Kind(
        "integration.sync", "default", 0.24, 12.0,
        lambda rng: {"origem": rng.choice(SOURCES), "pagina": rng.randint(1, 40)},
        _counted("Página {n} de {most}", 40),
        lambda rng: {"novos": rng.randint(0, 12), "alterados": rng.randint(0, 60)},
    ),
    Kind(
        "file.process", "default", 0.16, 60.0,
        lambda rng: {"arquivo": f"{rng.choice(FILES)}-{_day(rng)}.csv"},
        _steps("Validando colunas", "Lendo linhas", "Gravando lotes", "Conferindo totais"),
        lambda rng: {"linhas": rng.randint(800, 90_000)},
    ),
    Kind(
        "download.http", "default", 0.13, 30.0,
        lambda rng: {"url": f"https://files.example.com/{rng.choice(FILES)}/{rng.randint(100, 999)}.zip"},
        _counted("Baixando {n} MB", 24),
        lambda rng: {"bytes": rng.randint(400_000, 48_000_000)},
    ),
    Kind(
        "raspagem.pagina", "default", 0.07, 30.0,
        lambda rng: {"url": f"https://portal.example.com/processos/{rng.randint(10_000, 99_999)}"},
        _steps("Abrindo processo", "Página 2 de 5", "Página 4 de 5", "Guardando anexos"),
        lambda rng: {"paginas": 5, "anexos": rng.randint(0, 9)},
        progress=False,
    ),
    Kind(
        "boletos.gerar", "default", 0.02, 240.0,
        lambda rng: {"lote": rng.randint(1, 30), "competencia": _month(rng)},
        _counted("Boleto {n}/{most}", 400),
        lambda rng: {"boletos": 400, "valor": f"{rng.randint(80, 900)}.450,00"},
    ),
    Kind(
        "report.generate", "reports", 0.04, 60.0,
        lambda rng: {"competencia": _month(rng), "formato": rng.choice(("pdf", "xlsx")), "filiais": [1, 2, 7, 12]},
        _steps("Lendo vendas", "Somando filiais", "Montando o PDF", "Enviando"),
        lambda rng: {"paginas": rng.randint(12, 90), "arquivo": f"vendas-{_month(rng)}.pdf"},
    ),
)  # fmt: skip
BY_NAME = {kind.name: kind for kind in KINDS}


def any_kind(rng: Random) -> Kind:
    """One of them, by their shares."""
    return rng.choices(KINDS, [kind.share for kind in KINDS])[0]
