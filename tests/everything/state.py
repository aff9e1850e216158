"""requestState that can't be forged: what a modern call remembers from one round to the next."""

import base64
import binascii
import hashlib
import hmac
import json
import secrets
from typing import Any

from tests.everything.refusals import BadParams

KEY = secrets.token_bytes(32)


def sealed_state(answers: dict[str, Any], subject: str) -> str:
    """The answers so far, with a seal over them and the subject (method and name).

    A nonce makes each round's state differ even where the answers do not.
    """
    body = {"subject": subject, "answers": answers, "nonce": secrets.token_hex(8)}
    text = base64.urlsafe_b64encode(json.dumps(body).encode()).decode()
    return f"{text}.{_seal(text)}"


def open_state(state: object, subject: str) -> dict[str, Any]:
    """The answers in a state; BadParams when it is not ours, altered, or of another request."""
    text, _, seal = state.rpartition(".") if isinstance(state, str) else ("", "", "")
    if not hmac.compare_digest(seal.encode("utf-8", "replace"), _seal(text).encode()):
        raise BadParams("requestState is not one that this server gave out")
    try:
        body = json.loads(base64.urlsafe_b64decode(text))
    except (binascii.Error, ValueError):
        raise BadParams("requestState can't be read") from None
    if body["subject"] != subject:
        raise BadParams("requestState belongs to another request")
    answers: dict[str, Any] = body["answers"]
    return answers


def _seal(text: str) -> str:
    return hmac.new(KEY, text.encode("utf-8", "replace"), hashlib.sha256).hexdigest()
