"""The settings of the tests: the product's own, on the server that TURNO_TEST_POSTGRES names."""

import os

if os.environ.get("TURNO_TEST_POSTGRES"):
    os.environ["TURNO_DATABASE__URL"] = os.environ["TURNO_TEST_POSTGRES"]
os.environ.setdefault("TURNO_API__KEY", "test-key-0123456789")
os.environ["TURNO_LANG"] = "en"  # the sentences that tests quote

from turno.settings import *  # noqa: F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
