"""What a server can ask a client in the middle of a request."""

from tests.everything.pipe import Message


def form(message: str, *, optional: tuple[str, ...] = (), **fields: Message) -> Message:
    """Ask the person for these fields; all of them are required except the `optional` ones."""
    schema = {
        "type": "object",
        "properties": fields,
        "required": [name for name in fields if name not in optional],
    }
    return {
        "method": "elicitation/create",
        "params": {"mode": "form", "message": message, "requestedSchema": schema},
    }


def sample(prompt: str, *, longest: int = 100) -> Message:
    """Ask the client's model to go on from this prompt, by at most `longest` tokens."""
    words = {"role": "user", "content": {"type": "text", "text": prompt}}
    return {
        "method": "sampling/createMessage",
        "params": {"messages": [words], "maxTokens": longest},
    }


def roots() -> Message:
    """Ask which folders the client works in."""
    return {"method": "roots/list", "params": {}}


def sampled(answer: Message) -> str:
    """The text of a model's answer, be it one block or several."""
    content = answer.get("content")
    blocks = content if isinstance(content, list) else [content]
    return "".join(block.get("text", "") for block in blocks if isinstance(block, dict))


def filled(answer: Message) -> str:
    """What the person did with a form, as words for a result."""
    return f"action={answer.get('action')}, content={answer.get('content', {})}"
