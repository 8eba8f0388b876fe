"""Addresses of broker and Redis: what no client could read is refused at the start, and no word of it is repeated."""

import pytest

from jobs.conf import ConfigurationError
from jobs.serveraddress import parse_address

SECRETS = ("sek", "ret")
# Of every kind of address: the password holds what must be escaped, or what stands around it is nonsense.
MALFORMED = (
    "{0}://u:sek/ret@h:1/",
    "{0}://u:12/sekret@h/",
    "{0}://u:12?sekret@h/",
    "{0}://u:12#sekret@h/",
    "{0}://u:sek@ret@h/",
    "{0}://u:sek#ret@h/",
    "{0}://u:sek ret@h/",
    "{0}://u:sek\x7fret@h/",
    "{0}://u:sek\u2100ret@h/",
    "{0}://u:sekret@h:port/",
    "{0}://u:sekret@h:70000/",
    "{0}://u:sekret@h:0/",
    "{0}://u:sekret@[::1/",
    "{0}://u:sekret@:5672/",
    "{0}:sekret",
    "http://u:sekret@h/",
)
BROKER = "TURNO_MESSAGING__URLS"
REDIS = "TURNO_REDIS__URLS"
BUS = "TURNO_MESSAGING__AZURE_CONNECTION_STRING"
ROOT = "Endpoint=sb://x.servicebus.windows.net/"
KEY = "SharedAccessKeyName=Root;SharedAccessKey=sekret="


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((BROKER, form.format("amqp")) for form in MALFORMED),
        (BROKER, "amqp://sekret@h/"),  # no password
        *((REDIS, form.format("redis")) for form in MALFORMED),
        (REDIS, "unix://"),
        (REDIS, "redis://:sekret@h/zero"),
        (REDIS, "redis://:sekret@h/0?db=sekret"),
        (REDIS, "redis://:sekret@h/0?pasword=sekret"),
        (REDIS, "redis://:sekret@h/0?socket_timeout=sekret"),
        (REDIS, "redis://:sekret@h/0?ssl_cert_reqs=none"),  # no TLS is spoken
        (REDIS, "rediss://:sekret@h/0?ssl_cert_reqs=sekret"),
        *((BUS, f"Endpoint={form.format('sb')};{KEY}") for form in MALFORMED),
        (BUS, "sekret"),
        (BUS, ROOT),
        (BUS, f"{ROOT};SharedAccessKey=sekret"),
        (BUS, f"{ROOT};{KEY};sekret"),
        (BUS, f"{ROOT};{KEY};SharedAccessSignature=sekret"),
        (BUS, f"{ROOT};{KEY};EntityPath=turno-default"),
    ],
)
def test_a_malformed_address_is_refused_and_not_shown(read, name, value):
    with pytest.raises(ConfigurationError) as refused:
        read(**{name: value})

    (line,) = str(refused.value).splitlines()
    assert name in line
    assert not any(part in line for part in SECRETS)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (BROKER, "amqp://u:sek%2Fret%40@h/%2Fvhost?heartbeat=5,amqps://h"),
        (REDIS, "redis://h"),
        (REDIS, "redis://:sek%23ret@[::1]:6380/3?client_name=turno"),
        (REDIS, "rediss://u:p@h/0?ssl_cert_reqs=none&ssl_check_hostname=False"),
        (REDIS, "unix:///run/redis.sock?db=2&password=sekret"),
        (BUS, f"{ROOT};{KEY};"),
        (BUS, f"Endpoint=sb://127.0.0.1:5672;{KEY};UseDevelopmentEmulator=true"),
        (BUS, f"{ROOT};SharedAccessSignature=SharedAccessSignature sr=x&sig=y%3D&se=1"),
    ],
)
def test_what_clients_can_read_is_taken(read, name, value):
    read(**{name: value})


@pytest.mark.parametrize(
    ("url", "name", "tls"),
    [
        ("amqp://u:p@broker/", "broker:5672", False),
        ("amqps://u:p@broker/", "broker:5671", True),
        ("rediss://[::1]", "[::1]:6379", True),
        ("redis://:p@h:7/0", "h:7", False),
        ("unix:///run/a%20b.sock?password=p", "/run/a b.sock", False),
        ("sb://x.example/", "x.example:5671", True),
    ],
)
def test_a_server_is_called_by_host_and_port_alone(url, name, tls):
    assert (parse_address(url).name, parse_address(url).tls) == (name, tls)
