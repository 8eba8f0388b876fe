"""Dead letters."""

from django.urls import URLPattern, path, re_path

from dashboard.views import erros

KEY = r"(?P<key>[0-9A-Za-z_.-]{1,64})"

urlpatterns: list[URLPattern] = [
    path("erros", erros.page, name="erros"),
    path("erros/partes/grupos", erros.groups, name="erros-grupos"),
    re_path(rf"^erros/causas/{KEY}$", erros.cause, name="causa"),
    re_path(rf"^erros/causas/{KEY}/exemplo$", erros.body, name="causa-exemplo"),
    re_path(rf"^erros/causas/{KEY}/cartas$", erros.rows, name="causa-cartas"),
    path("erros/cartas/<uuid:id>/reenfileirar", erros.requeue, name="carta-reenfileirar"),
    path("erros/cartas/<uuid:id>/descartar", erros.discard, name="carta-descartar"),
]
