"""The API object: its parser, its renderer, its errors, its document; the routes are added by `jobs.api.urls`."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils import translation
from ninja import NinjaAPI
from ninja.openapi.docs import Swagger
from ninja.parser import Parser

from jobs import jsonvalues
from jobs.api import openapi, problems
from jobs.api.auth import KEYED, documents_guard
from jobs.api.rendering import Renderer
from jobs.version import VERSION


class StrictParser(Parser):
    """Bodies as `jobs.jsonvalues` reads them, declared as JSON."""

    def parse_body(self, request: HttpRequest) -> Any:
        charset = (request.content_params or {}).get("charset", "utf-8").lower()
        if request.content_type != "application/json" or charset not in {"utf-8", "utf8", "us-ascii"}:
            raise problems.UnsupportedMediaType(problems.STATUS_WORDS[415][1])
        return jsonvalues.loads(request.body)


class TurnoSwagger(Swagger):
    """ninja's bundled Swagger in a page of ours: our language, icon and Content-Security-Policy."""

    template = "api/docs.html"


class TurnoAPI(NinjaAPI):
    """Answers every error by the table of `jobs.api.problems`."""

    _documents: dict[str, Any]

    def set_default_exception_handlers(self) -> None:
        self._documents = {}
        self.add_exception_handler(Exception, self._problem)

    @staticmethod
    def _problem(request: HttpRequest, error: Any) -> HttpResponse:
        return problems.response(request, problems.as_refused(error))

    def get_openapi_schema(self, *, path_prefix: str | None = None, path_params: Any = None) -> Any:
        """The document in the active language, made once a language."""
        language = translation.get_language() or ""
        if language not in self._documents:
            document = super().get_openapi_schema(path_prefix=path_prefix, path_params=path_params)
            self._documents[language] = openapi.finished(document)
        return self._documents[language]


api = TurnoAPI(
    title="Turno",
    version=VERSION,
    description=openapi.DESCRIPTION,
    openapi_url="/openapi/v1.json",
    docs_url="/docs",
    docs=TurnoSwagger(settings={"tryItOutEnabled": True, "displayRequestDuration": True}),
    docs_decorator=documents_guard,
    urls_namespace="turno-api",
    auth=KEYED,
    parser=StrictParser(),
    renderer=Renderer(),
)
