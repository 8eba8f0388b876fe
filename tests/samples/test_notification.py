"""notification.send renders, masks, and sends nothing."""

import pytest

from jobs.errors import Invalid
from turno.handlers import PermanentJobError
from turno.samples.notification_send import mask, send_notification
from turno.testing import FakeContext, run_job

ADDRESS = "ana.souza@example.com"


def test_the_message_is_rendered_with_its_variables():
    payload = {
        "recipient": ADDRESS,
        "subject": "Pedido {{ pedido }}",
        "body": "Olá, {{nome}}: {{ pedido }} = {{ valor }}",
        "variables": {"nome": "Ana", "pedido": 7, "valor": 9.5},
    }
    run = run_job(send_notification, payload)
    assert run.files["preview.txt"].decode() == "a***@example.com\nPedido 7\n\nOlá, Ana: 7 = 9.5\n"
    assert (run.result["subject"], run.result["sent"], run.result["characters"]) == ("Pedido 7", False, 17)


def test_the_recipient_is_masked_wherever_it_would_be_kept():
    payload = {"recipient": ADDRESS, "subject": "Para {{ nome }}", "body": ADDRESS, "variables": {"nome": ADDRESS}}
    run = run_job(send_notification, payload)
    kept = f"{run.result} {run.logs} {run.ctx.progresses} {run.files}"
    assert "souza" not in kept
    assert run.result["recipient"] == mask(ADDRESS) == "a***@example.com"
    assert any("a***@example.com" in line for _, line in run.logs)


def test_a_value_that_looks_like_a_variable_stays_as_it_is():
    payload = {"recipient": ADDRESS, "subject": "x", "body": "{{ a }}", "variables": {"a": "{{ b }}"}}
    assert run_job(send_notification, payload).result["characters"] == 7


def test_a_variable_without_a_value_is_a_permanent_error_that_names_it():
    payload = {"recipient": ADDRESS, "subject": "x", "body": "{{ b }} {{ a }} {{ b }}", "variables": {}}
    with pytest.raises(PermanentJobError, match="a, b"):
        run_job(send_notification, payload)


def test_two_recipients_have_two_message_ids_and_one_has_one():
    ids = [
        run_job(send_notification, {"recipient": f"{name}@example.com"}).result["message_id"]
        for name in ("a", "a", "b")
    ]
    assert ids[0] == ids[1] != ids[2]


@pytest.mark.parametrize(
    "recipient", ["ana@gmail.com", "ana", "ana@", "@example.com", "a b@example.com", ADDRESS + "\n", 5]
)
def test_an_address_that_could_be_somebodys_is_refused(recipient):
    with pytest.raises(Invalid) as refusal:
        run_job(send_notification, {"recipient": recipient}, ctx=FakeContext())
    assert list(refusal.value.errors) == ["payload.recipient"]


def test_a_name_of_a_variable_is_checked():
    with pytest.raises(Invalid) as refusal:
        run_job(send_notification, {"recipient": ADDRESS, "variables": {"not a name": 1}})
    assert next(iter(refusal.value.errors)).startswith("payload.variables")
