"""Decide how much of a call's arguments may be written down.

Arguments are whatever a model typed: file contents, passwords, a customer's
letter. What looks like a credential, by its key or by itself, is replaced; the
rest is shortened until a record stays a line one can read. This is best effort
by nature, which is why arguments are not written at all unless asked for.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from gateway.observe.visible import visible

HIDDEN = "[redacted]"
TEXT_LONGEST = 256
DEPTH = 6
MEMBERS = 32
"""Of one object or array."""
BUDGET = 8192
"""Characters of all texts together: a record with arguments stays below about 10 KiB."""
WINDOW = 8192
"""How much of one text is searched for credentials; more is shown of none."""
LARGE = 2**63
"""Larger integers do not fit the writer, and JSON readers round them anyway."""
RAW_LONGEST = 256 * 1024
"""Bytes of JSON beyond which arguments are not even decoded: only their size is told."""

_SECRET_IN_KEY = re.compile(
    "passw(or)?d|passphrase|passcode|secret|token|api_?key|authorization|authentication|cookie"
    "|credential|private_?key|access_?key|account_?key|signing_?key|encryption_?key|ssh_?key"
    "|bearer|connection_?string|session_?id"
    "|(^|_)(auth|pwd|pin|otp|totp|jwt|cvv|cvc|dsn|sid|mfa|pat)(_|$)"
)
_WORD_START = re.compile("(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")

_SECRET_IN_TEXT = re.compile(
    r"-----BEGIN[ A-Z0-9]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"[\s\S]*?(?:-----END[ A-Z0-9]{0,60}-----|\Z)"
    r"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?"  # JWT
    r"|\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}"  # OpenAI, Anthropic, Stripe
    r"|\bgh[pousr]_[A-Za-z0-9]{16,}|\bgithub_pat_\w{16,}|\bgl(?:pat|dt|rt|cbt)-[\w-]{16,}"
    r"|\bxox[a-z]-[\w-]{10,}|\bxapp-[\w-]{10,}"  # Slack
    r"|\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}"  # AWS
    r"|\bAIza[\w-]{30,}|\bya29\.[\w-]{16,}"  # Google
    r"|\b(?:hf|npm|dop_v1|shpat|lin_api|glsa|sntrys)_\w{16,}"
    r"|\bnvapi-[\w-]{16,}|\bpypi-[\w-]{32,}|\bSG\.[\w-]{16,}"
    # RFC 6750 and RFC 7617; with a digit or sign, so that "basic knowledge" is none.
    r"|\b(?:bearer|basic)\s{1,3}(?=[a-z]{0,99}[0-9=+/._~-])[\w.~+/=-]{8,}"
    r"|(?<=://)[^\s/@:]{0,128}:[^\s/@]{1,256}(?=@)"  # user:password in a URL
    r"|(?:passw(?:or)?d|pwd|secret|token|api[_-]?key|access[_-]?key|authorization|signature|\bsig)"
    r"[\"']?\s{0,3}[=:]\s{0,3}[\"']?(?:(?:bearer|basic|token)\s{1,3})?[^\s\"'&,;]{4,}",
    re.IGNORECASE,
)


def redact_text(text: str, longest: int = TEXT_LONGEST) -> str:
    """One line of `text` with credentials replaced, shortened and made visible."""
    seen = _SECRET_IN_TEXT.sub(HIDDEN, text[:WINDOW])
    # A credential cut in two by the window no longer looks like one: leave out where it would be.
    seen = seen[:-512] if len(text) > WINDOW else seen
    if len(seen) > longest or len(text) > WINDOW:
        return f"{visible(seen[:longest])}… ({len(text)} characters)"
    return visible(seen)


def redact_raw(arguments: bytes | msgspec.Raw) -> object:
    """Arguments as JSON text, redacted. Too long or too deep: a note of their size instead."""
    size = memoryview(arguments).nbytes
    if size > RAW_LONGEST:
        return f"[{size} bytes]"
    try:
        return redact(msgspec.json.decode(arguments))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return f"[{size} bytes, not readable]"


def redact(value: object) -> object:
    """A decoded JSON value as it may be written down."""
    return _Redaction().of(value, 0)


def is_secret_key(key: str) -> bool:
    """True if a member of this name is presumed to hold a credential, whatever its spelling."""
    return _SECRET_IN_KEY.search(_WORD_START.sub("_", key).lower()) is not None


@dataclass(slots=True)
class _Redaction:
    """One walk over one value; remembers how much may still be written."""

    left: int = BUDGET

    def of(self, value: object, depth: int) -> object:
        match value:
            case None | bool() | float():
                self.left -= 8
                return value
            case int():
                self.left -= 20
                return value if -LARGE < value < LARGE else "[large number]"
            case str():
                return self.text(value)
            case Mapping() | Sequence() if depth >= DEPTH:
                return f"[{len(value)} members]" if value else value
            case Mapping():
                return self.members(value, depth)
            case Sequence():
                return self.items(value, depth)
        return f"[{type(value).__name__}]"

    def text(self, text: str) -> str:
        shown = redact_text(text, max(0, min(TEXT_LONGEST, self.left)))
        self.left -= len(shown)
        return shown

    def members(self, value: Mapping[object, object], depth: int) -> dict[str, object]:
        shown: dict[str, object] = {}
        for at, (key, held) in enumerate(value.items()):
            if at == MEMBERS or self.left <= 0:
                shown["…"] = f"[{len(value) - at} more]"
                break
            name = redact_text(str(key), 64)
            self.left -= len(name)
            shown[name] = HIDDEN if _hides(str(key), held) else self.of(held, depth + 1)
        return shown

    def items(self, value: Sequence[object], depth: int) -> list[object]:
        shown: list[object] = []
        for at, held in enumerate(value):
            if at == MEMBERS or self.left <= 0:
                shown.append(f"[{len(value) - at} more]")
                break
            shown.append(self.of(held, depth + 1))
        return shown


def _hides(key: str, held: object) -> bool:
    if held is None or isinstance(held, bool) or not is_secret_key(key):
        return False
    # `max_tokens: 4096` is a count; a PIN is a number and yet a secret.
    return not (isinstance(held, int | float) and "token" in key.lower())
