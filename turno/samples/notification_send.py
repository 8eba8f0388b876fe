"""`notification.send`: renders a message and masks whom it is for. It sends nothing."""

import hashlib
import re
from typing import Annotated, Any, Literal

from django.utils.translation import gettext, gettext_noop
from pydantic import Field, StringConstraints, field_validator

from turno.handlers import JobContext, PermanentJobError, job_type
from turno.samples.pace import Demonstration, Pace
from turno.samples.reserved import is_reserved

VARIABLE = re.compile(r"\{\{\s*([a-z_][a-z0-9_]{0,39})\s*\}\}", re.IGNORECASE)
# For forms and clients, which know the schema only; the validator below decides.
PATTERN = (
    r"^[A-Za-z0-9._%+-]{1,64}@(([A-Za-z0-9-]+\.)*example\.(com|net|org)|([A-Za-z0-9-]+\.)+(example|invalid|test))$"
)
ADDRESS = re.compile(r"[A-Za-z0-9._%+-]{1,64}@([A-Za-z0-9.-]{1,190})")

VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,39}$")]
VariableValue = Annotated[str, StringConstraints(max_length=500)] | int | float


class NotificationPayload(Demonstration):
    """Whom to notify of what."""

    recipient: str = Field(
        max_length=254,
        description=gettext_noop("An e-mail address under a name reserved for examples; nothing is sent to it."),
        examples=["ana.souza@example.com"],
        json_schema_extra={"format": "email", "pattern": PATTERN},
    )
    channel: Literal["email", "push"] = Field(
        "email", description=gettext_noop("What the message is rendered for."), examples=["email"]
    )
    subject: str = Field(
        "Pedido {{ pedido }}",
        min_length=1,
        max_length=200,
        description=gettext_noop("The subject, with {{ variable }} where a value goes."),
        examples=["Pedido {{ pedido }}"],
    )
    body: str = Field(
        "Olá, {{ nome }}. O pedido {{ pedido }} saiu para entrega.",
        min_length=1,
        max_length=10_000,
        description=gettext_noop("The text, with {{ variable }} where a value goes."),
        examples=["Olá, {{ nome }}."],
    )
    variables: dict[VariableName, VariableValue] = Field(
        default={"nome": "Ana", "pedido": 1024},
        max_length=50,
        description=gettext_noop("The values by variable."),
        examples=[{"nome": "Ana", "pedido": 1024}],
    )

    @field_validator("recipient")
    @classmethod
    def _reserved(cls, value: str) -> str:
        match = ADDRESS.fullmatch(value)
        if match is None or not is_reserved(match.group(1)):
            raise ValueError(gettext("Expected an e-mail address under a reserved name such as example.com."))
        return value


@job_type("notification.send", queue="critical", priority=5, timeout="2 min")
async def send_notification(ctx: JobContext, payload: NotificationPayload) -> dict[str, Any]:
    """Renders a notification and masks whom it is for; nothing is sent."""
    masked = mask(payload.recipient)
    pace = Pace(ctx, payload, steps=3)
    await pace.astep(gettext("Rendering the message"))
    subject = render(payload.subject, payload.variables)
    body = render(payload.body, payload.variables)
    await pace.astep(gettext("Hiding the recipient"))
    subject, body = (text.replace(payload.recipient, masked) for text in (subject, body))
    digest = hashlib.sha256(f"{payload.recipient}\n{subject}\n{body}".encode()).hexdigest()
    await pace.astep(gettext("Preparing the preview"))
    (ctx.folder / "preview.txt").write_text(f"{masked}\n{subject}\n\n{body}\n", encoding="utf-8")
    ctx.log(gettext("Prepared for %(recipient)s by %(channel)s") % {"recipient": masked, "channel": payload.channel})
    pace.done()
    return {
        "recipient": masked,
        "channel": payload.channel,
        "subject": subject,
        "characters": len(body),
        "message_id": digest[:20],
        "sent": False,
    }


def mask(address: str) -> str:
    """An address with one letter left of who it is: "a***@example.com"."""
    name, _, host = address.partition("@")
    return f"{name[:1]}***@{host}"


def render(template: str, variables: dict[str, str | int | float]) -> str:
    """The template with its variables filled in. Raises PermanentJobError naming those that have no value."""
    missing = sorted({name for name in VARIABLE.findall(template) if name not in variables})
    if missing:
        raise PermanentJobError(gettext("No value was given for %(names)s.") % {"names": ", ".join(missing)})
    return VARIABLE.sub(lambda match: str(variables[match.group(1)]), template)
