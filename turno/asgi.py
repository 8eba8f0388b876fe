"""The ASGI application: `daphne turno.asgi:application`."""

import gc
import os

from turno.environment import prepare

os.environ["TURNO_PROCESS"] = "web"
prepare()

import django  # noqa: E402  (the environment comes first)

django.setup(set_prefix=False)

from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402  (Django comes first)
from django.urls import re_path  # noqa: E402

from dashboard.routing import websocket_urlpatterns  # noqa: E402
from jobs import bulk, reachable  # noqa: E402
from jobs.conf import conf  # noqa: E402
from jobs.registry import catalogue  # noqa: E402
from turno.serving import Handler, refuse_websocket  # noqa: E402

# Before the first request: one that asks for a type must not be the one that meets a broken module.
catalogue.load(guarded=True)
bulk.resume()
reachable.watch(conf())
sockets = URLRouter([*websocket_urlpatterns, re_path("", refuse_websocket)])
application = ProtocolTypeRouter({"http": Handler(), "websocket": sockets})
gc.freeze()  # what is there by now stays: the collector need not walk it again and again
