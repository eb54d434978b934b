"""Verifies the requests of webhooks, which are signed as Standard Webhooks describes."""

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .api_client.models import EventJson


class WebhookVerificationError(Exception):
    """The request is not one of the server's, or too old."""


@dataclass(frozen=True)
class WebhookMessage:
    """What the server tells a receiver. A message that is sent again has the same id."""

    id: str
    type: str
    # None for a message that is not about a batch, such as a ping.
    data: EventJson | None


def verify_webhook(
    secrets: str | Sequence[str], headers: Mapping[str, str], body: bytes | str, *, tolerance: float = 300
) -> WebhookMessage:
    """Verifies a request by the secret of the webhook (`whsec_…`), or by several while the secret changes.

    The body is as it was received: another JSON text with the same fields has another signature. `tolerance` is how far
    the time of the request may be from this machine's, in seconds.
    """
    values = {name.lower(): value for name, value in headers.items()}
    try:
        message_id, timestamp = values["webhook-id"], values["webhook-timestamp"]
        signatures = values["webhook-signature"].split()
    except KeyError as missing:
        raise WebhookVerificationError(f"the request has no {missing.args[0]}") from None
    if not timestamp.isdecimal() or abs(time.time() - int(timestamp)) > tolerance:
        raise WebhookVerificationError("the time of the request is too far from now")
    data = body.encode() if isinstance(body, str) else body
    signed = f"{message_id}.{timestamp}.".encode() + data
    expected = [_sign(secret, signed) for secret in ([secrets] if isinstance(secrets, str) else secrets)]
    # Each is compared, so that the time does not depend on which one is equal.
    equal = [hmac.compare_digest(ours.encode(), theirs.encode()) for ours in expected for theirs in signatures]
    if not any(equal):
        raise WebhookVerificationError("no signature of the request is of this secret")
    message = json.loads(data)
    event = EventJson.from_dict(message["data"]) if message["type"].startswith("batch.") else None
    return WebhookMessage(message_id, message["type"], event)


def _sign(secret: str, signed: bytes) -> str:
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except binascii.Error:
        raise WebhookVerificationError("the secret is not whsec_ and base64") from None
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
