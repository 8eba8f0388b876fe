"""Servers that answer and can't be used for locks: it is said in words without a secret, once, and work goes on."""

import asyncio
import socket
import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.kit.redis_server import running_redis
from tests.locks.house import locked, pair, until, values, worker
from turno.launcher import ports

pytestmark = pytest.mark.slow
SECRET = "s3cr3t-of-redis"


def told(locks):
    """What is said of the only server."""
    return [problem["error"] for problem in locks.problems() if "does not answer" in problem["error"]]


async def says(locks, words):
    await until(lambda: any(words in error for error in told(locks)), f"it says {words!r}, not {told(locks)}")


async def stays(locks, caplog):
    """It is no server that comes and goes: work is taken, and nothing is said again and again."""
    for _ in range(15):
        assert len((await locks.acquire([pair(), pair()])).held) == 2
        assert told(locks)
        await asyncio.sleep(0.02)
    assert [record.message for record in caplog.records if record.message.startswith("locks.")] in ([], ["locks.away"])
    assert SECRET not in "".join([*told(locks), caplog.text, *(str(vars(record)) for record in caplog.records)])


async def works(locks, server, job_and_token):
    await until(lambda: not locks.problems(), "it is fit again")
    await until(lambda: values([server], job_and_token[0]) == [str(job_and_token[1])], "it is locked")


async def test_a_replica(redis_server, caplog):
    redis_server.ask("REPLICAOF", "127.0.0.1", "1")
    async with worker([redis_server]) as locks:
        await says(locks, "read only replica")
        await locks.acquire([mine := pair()])
        await stays(locks, caplog)
        redis_server.ask("REPLICAOF", "NO", "ONE")
        await works(locks, redis_server, mine)


async def test_one_that_becomes_a_replica_while_it_is_used(redis_server, caplog):
    async with worker([redis_server]) as locks:
        await locks.acquire([mine := pair()])
        redis_server.ask("REPLICAOF", "127.0.0.1", "1")
        await locks.acquire([pair()])
        await says(locks, "read only replica")
        await stays(locks, caplog)
        redis_server.ask("REPLICAOF", "NO", "ONE")
        await works(locks, redis_server, mine)


async def test_one_that_is_out_of_memory(redis_server, caplog):
    async with worker([redis_server]) as locks:
        redis_server.ask("CONFIG", "SET", "maxmemory", "1")
        await locks.acquire([mine := pair()])
        await says(locks, "maxmemory")
        await stays(locks, caplog)
        redis_server.ask("CONFIG", "SET", "maxmemory", "0")
        await works(locks, redis_server, mine)


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ("+@all -eval -evalsha", "permission"),
        ("+@all -get", "can't run this command"),
        ("+@all -pexpire", "can't run this command"),
        ("+@all -del", "can't run this command"),
        ("+ping", "permission"),
    ],
)
async def test_a_user_who_may_not_do_all_that_locks_need(redis_server, caplog, rules, words):
    redis_server.ask("ACL", "SETUSER", "app", "on", f">{SECRET}", "~*", *rules.split())
    url = redis_server.url.replace("://", f"://app:{SECRET}@")
    async with worker([url]) as locks:
        await says(locks, words)
        await locks.acquire([mine := pair()])
        await stays(locks, caplog)
        redis_server.ask("ACL", "SETUSER", "app", "+@all")
        await works(locks, redis_server, mine)


async def test_a_user_who_may_use_our_keys_alone_is_enough(redis_server):
    commands = "+ping +select +client +eval +evalsha +set +get +pexpire +del"
    redis_server.ask("ACL", "SETUSER", "app", "on", f">{SECRET}", "~turno:*", *commands.split())
    async with worker([redis_server.url.replace("://", f"://app:{SECRET}@")]) as locks:
        await locks.acquire([mine := pair()])
        await works(locks, redis_server, mine)
        locks.release([mine])
        await until(lambda: not locked([redis_server]), "it is given back")


@pytest.mark.parametrize("login", [f"app:{SECRET}", f":{SECRET}"])
async def test_a_wrong_password(redis_server, caplog, login):
    redis_server.ask("ACL", "SETUSER", "app", "on", ">another", "~*", "+@all")
    async with worker([redis_server.url.replace("://", f"://{login}@")]) as locks:
        await says(locks, "password")
        assert f"127.0.0.1:{redis_server.port}" in told(locks)[0]
        await stays(locks, caplog)
        assert "app" not in told(locks)[0]


async def test_a_database_that_there_is_not(redis_server, caplog):
    async with worker([redis_server.url.removesuffix("/0") + "/99"]) as locks:
        await says(locks, "DB index is out of range")
        await stays(locks, caplog)


async def test_a_part_of_a_cluster(tmp_path, caplog):
    bus = str(ports.free_port())  # else 10,000 above the other, where outgoing connections have theirs
    with running_redis(tmp_path, 1, "--cluster-enabled", "yes", "--cluster-port", bus) as [server]:
        server.ask("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
        await until(lambda: "cluster_state:ok" in str(server.ask("CLUSTER", "INFO")), "the cluster stands")
        async with worker([server]) as locks:
            await says(locks, "same slot")
            await stays(locks, caplog)


async def test_one_that_forgets_its_scripts_while_it_is_used(redis_server, caplog):
    async with worker([redis_server], ttl=1.0) as locks:
        for _ in range(3):
            redis_server.ask("SCRIPT", "FLUSH")
            mine = pair()
            assert (await locks.acquire([mine])).held == {mine[1]}
            assert values([redis_server], mine[0]) == [str(mine[1])]
            redis_server.ask("SCRIPT", "FLUSH")
            locks.release([mine])
            await until(lambda: not locked([redis_server]), "it is given back")
        assert not locks.problems()
    assert [record.message for record in caplog.records if record.message.startswith("locks.")] == []


class Stranger:
    """Takes connections and says the same to whatever it is asked; `line` None: nothing, and ends them."""

    def __init__(self, line):
        self.line = line
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self._listener.getsockname()[1]}/0"
        self.asked = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection):
        with connection:
            while self.line is not None and connection.recv(65536):
                self.asked += 1
                connection.sendall(self.line)

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@contextmanager
def stranger(line):
    made = Stranger(line)
    try:
        yield made
    finally:
        made.close()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"-LOADING Redis is loading the dataset in memory\r\n", "loading the dataset"),
        (b"-NOAUTH Authentication required.\r\n", "Authentication required"),
        (b"-MISCONF Redis is configured to save RDB snapshots, but it can't\r\n", "RDB snapshots"),
        (b"-BUSY Redis is busy running a script.\r\n", "busy running a script"),
        (b"-MASTERDOWN Link with MASTER is down\r\n", "MASTER is down"),
        (b"-ERR max number of clients reached\r\n", "max number of clients"),
        (b"+OK\r\n", "does not do what Redis does"),
        (b":1\r\n", "does not do what Redis does"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", ""),
        (None, ""),
    ],
)
async def test_one_that_refuses_everything_or_is_no_redis(caplog, line, words):
    with stranger(line) as server:
        async with worker([server.url]) as locks:
            await says(locks, words)
            await stays(locks, caplog)
            assert server.asked < 60  # nobody asks without a pause
    assert not [record for record in caplog.records if record.levelname == "ERROR"][1:]


def certificate(folder, name="127.0.0.1"):
    """A certificate that signs itself; the files of it and of its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(name))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    kind = serialization.Encoding.PEM
    (folder / "cert.pem").write_bytes(made.public_bytes(kind))
    plain = serialization.NoEncryption()
    (folder / "key.pem").write_bytes(key.private_bytes(kind, serialization.PrivateFormat.PKCS8, plain))
    return folder / "cert.pem", folder / "key.pem"


async def test_by_tls_with_a_certificate_that_is_trusted_and_not_with_another(tmp_path, caplog):
    cert, key = certificate(tmp_path)
    port = ports.free_port()
    options = ["--tls-port", str(port), "--tls-cert-file", str(cert), "--tls-key-file", str(key)]
    with running_redis(tmp_path, 1, *options, "--tls-ca-cert-file", str(cert), "--tls-auth-clients", "no") as [server]:
        async with worker([f"rediss://127.0.0.1:{port}/0?ssl_ca_certs={cert}"]) as locks:
            await locks.acquire([mine := pair()])
            await works(locks, server, mine)
        async with worker([f"rediss://127.0.0.1:{port}/0"]) as locks:
            await says(locks, "certificate")
            await stays(locks, caplog)
        async with worker([f"rediss://127.0.0.1:{server.port}/0?ssl_ca_certs={cert}"]) as locks:  # speaks no TLS there
            await says(locks, "")
