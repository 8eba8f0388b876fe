"""The ASGI application: `daphne turno.asgi:application`."""

import os

from turno.environment import prepare

os.environ["TURNO_PROCESS"] = "web"
prepare()

from django.core.asgi import get_asgi_application  # noqa: E402  (the environment comes first)

application = get_asgi_application()
