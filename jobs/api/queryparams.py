"""Query strings, strictly: a misspelt filter must not answer with everything."""

from difflib import get_close_matches

from django.http import HttpRequest
from django.utils.translation import gettext as _
from pydantic import BaseModel

from jobs.errors import refused_fields


def refuse_strange(request: HttpRequest, model: type[BaseModel]) -> None:
    """Raises Invalid when a parameter is none of the model's fields, or stands twice."""
    errors: dict[str, list[str]] = {}
    known = {field.alias or name for name, field in model.model_fields.items()}
    for name, values in request.GET.lists():
        if name not in known:
            near = get_close_matches(name[:200], sorted(known), n=1)
            text = _("There is no such parameter; did you mean %(name)s?") % {"name": near[0]} if near else ""
            errors[name[:200]] = [text or _("There is no such parameter.")]
        elif len(values) > 1:
            errors[name] = [_("This parameter may appear only once.")]
    if errors:
        raise refused_fields(errors)
