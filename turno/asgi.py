"""The ASGI application: `daphne turno.asgi:application`."""

import os

from turno.environment import prepare

os.environ["TURNO_PROCESS"] = "web"
prepare()

import django  # noqa: E402  (the environment comes first)

django.setup(set_prefix=False)

from channels.routing import ProtocolTypeRouter  # noqa: E402  (Django comes first)

from turno.serving import Handler, refuse_websocket  # noqa: E402

application = ProtocolTypeRouter({"http": Handler(), "websocket": refuse_websocket})
