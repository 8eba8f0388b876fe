"""The ASGI application: `daphne turno.asgi:application`."""

import os

from turno.environment import load_env_file

load_env_file()
os.environ["TURNO_PROCESS"] = "web"
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "turno.settings")

from django.core.asgi import get_asgi_application  # noqa: E402  (the environment comes first)

application = get_asgi_application()
