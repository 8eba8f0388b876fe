"""Why there is no connection, in words for people and not in those of the client library."""

import asyncio

import pytest
from pika import exceptions

from workers.transports.amqp import Options, Unreachable, connect, reason

DENIED = "ConnectionClosedByBroker: (403) 'ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN.'"
NO_VHOST = "ConnectionClosedByBroker: (530) 'NOT_ALLOWED - vhost nope not found'"
LOST = "StreamLostError: ('Transport indicated EOF',)"
OPENING = "the connection was closed while it was being opened"
REASONS = {
    "password": (exceptions.ProbableAuthenticationError(DENIED), "the broker refuses the user or the password"),
    "virtual host": (exceptions.ProbableAccessDeniedError(NO_VHOST), "the broker refuses access to the virtual host"),
    "away at the login": (exceptions.ProbableAuthenticationError(LOST), OPENING),
    "away at the virtual host": (exceptions.ProbableAccessDeniedError(LOST), OPENING),
    "no broker": (exceptions.IncompatibleProtocolError(LOST), "what answers there is no broker for AMQP 0-9-1"),
    "cable": (
        exceptions.StreamLostError("Stream connection lost: Reset(104)"),
        "the connection was lost",
    ),
    "silence": (exceptions.AMQPHeartbeatTimeout("No activity"), "the broker gave no sign of life"),
    "slow": (exceptions.ConnectionOpenAborted("Connection.close() called before"), "no answer in time"),
    "closed": (exceptions.ConnectionClosedByBroker(320, "CONNECTION_FORCED - x"), "CONNECTION_FORCED - x (320)"),
    "system": (ConnectionRefusedError(111, "Connection refused"), "Connection refused"),
    "wrapped": (exceptions.AMQPConnectionError(exceptions.AMQPConnectionError(OSError(113, "No route"))), "No route"),
    "text": ("anything", "anything"),
}


@pytest.fixture(autouse=True)
def english(settings):
    """The language of the sentences that are quoted."""
    settings.LANGUAGE_CODE = "en"


@pytest.mark.parametrize(("error", "said"), REASONS.values(), ids=REASONS)
def test_the_reason_is_a_sentence(error, said):
    assert reason(error) == said


def test_what_speaks_something_else_is_no_broker():
    async def web(_reader, writer):
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async def run():
        server = await asyncio.start_server(web, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server:
            await connect(Options((f"amqp://turno:hidden-word@127.0.0.1:{port}/",), 30, 5, "test"))

    with pytest.raises(Unreachable, match="no broker for AMQP") as told:
        asyncio.run(run())
    assert "hidden-word" not in str(told.value)


def test_a_file_that_a_tls_address_names_and_is_not_there_is_said():
    async def run():
        await connect(Options(('amqps://127.0.0.1:1/?ssl_options={"cafile":"/nowhere"}',), 30, 5, "test"))

    with pytest.raises(Unreachable, match="No such file"):
        asyncio.run(run())
