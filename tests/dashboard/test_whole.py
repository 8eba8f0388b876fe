"""A browser that does not trust what it shows is sent it again, though nothing changed but the clocks."""

import pytest
from django.test import Client
from django.urls import reverse

from dashboard.fragments import SEEN, WHOLE
from dashboard.shared import forget
from tests.api.client import KEY
from tests.dashboard.boards import make_worker

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("name", ["painel-veredito", "painel-faixa", "painel-quadro", "nav-counts"])
def test_a_part_that_has_not_changed_is_empty_and_whole_when_it_is_asked_for_whole(name):
    make_worker()
    forget()
    client = Client()
    client.post("/entrar", {"chave": KEY})
    address = reverse(name)
    first = client.get(address)
    assert first.status_code == 200
    seen = {SEEN: first.headers[SEEN]}
    assert client.get(address, headers=seen).status_code == 204
    again = client.get(address, headers=seen | {WHOLE: "1"})
    assert again.status_code == 200
    assert again.headers[SEEN] == first.headers[SEEN]
