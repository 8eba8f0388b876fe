"""Payloads for a demonstration: realistic ones, of which about one in ten is slow and one in twelve fails.

Standard library only, so that a script can use it without Django.
"""

from random import Random
from typing import Any

SLOW = 0.10
FAILING = 0.08
# What a failing one does: an error that passes at the second attempt, one that stays, and so on.
FAILURES: tuple[dict[str, Any], ...] = (
    {"fail": "error", "fail_times": 1},
    {"fail": "error", "fail_times": 2},
    {"fail": "error"},
    {"fail": "transient", "fail_times": 1},
    {"fail": "permanent"},
)
TITLES = ("Vendas do mês", "Vendas por região", "Fechamento diário", "Ranking de produtos", "Prévia do trimestre")
FILES = ("pedidos", "notas", "extrato", "estoque", "clientes", "remessa")
SOURCES = ("customers", "orders", "invoices", "stock")
PEOPLE = ("Ana Souza", "Bruno Lima", "Carla Dias", "Davi Rocha", "Elisa Prado", "Hugo Melo", "Lia Nunes", "Rui Braga")
MESSAGES = (
    ("Pedido {{ pedido }} confirmado", "Olá, {{ nome }}. Recebemos o pedido {{ pedido }}."),
    ("Pedido {{ pedido }} a caminho", "Olá, {{ nome }}. O pedido {{ pedido }} saiu para entrega."),
    ("Fatura do pedido {{ pedido }}", "{{ nome }}, a fatura do pedido {{ pedido }} está disponível."),
)


def _report(rng: Random) -> dict[str, Any]:
    return {
        "title": rng.choice(TITLES),
        "rows": rng.choice((200, 500, 1000, 2500)),
        "group_by": rng.choice(("region", "product", "month")),
    }


def _file(rng: Random) -> dict[str, Any]:
    return {
        "name": f"{rng.choice(FILES)}-{rng.randint(1, 999):03}.txt",
        "lines": rng.choice((100, 400, 1500, 4000)),
        "transform": rng.choice(("upper", "lower", "title", "reverse", "number")),
    }


def _sync(rng: Random) -> dict[str, Any]:
    return {
        "source": f"https://api.example.com/{rng.choice(SOURCES)}",
        "records": rng.randint(20, 400),
        "page_size": rng.choice((20, 50, 100)),
        "known": round(rng.uniform(0.6, 1.0), 2),
        "transient_rate": rng.choice((0, 0, 0, 0.05)),
    }


def _notification(rng: Random) -> dict[str, Any]:
    person = rng.choice(PEOPLE)
    subject, body = rng.choice(MESSAGES)
    return {
        "recipient": f"{person.lower().replace(' ', '.')}@example.com",
        "channel": rng.choice(("email", "email", "push")),
        "subject": subject,
        "body": body,
        "variables": {"nome": person.split()[0], "pedido": rng.randint(1000, 99_999)},
    }


_PAYLOADS = {
    "report.generate": _report,
    "file.process": _file,
    "integration.sync": _sync,
    "notification.send": _notification,
}
DEMO_TYPES = tuple(_PAYLOADS)


def demo_payload(type_name: str, rng: Random) -> dict[str, Any]:
    """A payload for one of DEMO_TYPES. The same state of `rng` gives the same payload.

    Raises ValueError for another type.
    """
    if type_name not in _PAYLOADS:
        raise ValueError(f"{type_name!r}: expected one of {', '.join(DEMO_TYPES)}")
    payload = {**_PAYLOADS[type_name](rng), "seed": rng.randint(0, 9999)}
    slow = rng.random() < SLOW
    payload["duration"] = round(rng.uniform(4, 12) if slow else rng.uniform(0.05, 0.8), 2)
    if rng.random() < FAILING:
        payload.update(rng.choice(FAILURES))
    return payload
