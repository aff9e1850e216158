"""The prompts this server offers, what they say, and how their arguments complete."""

from collections.abc import Awaitable, Callable

from tests.everything.calls import Call
from tests.everything.content import embedded, picture, text
from tests.everything.pipe import Message
from tests.everything.questions import form
from tests.everything.refusals import BadParams

Prompt = Callable[[Call], Awaitable[list[Message]]]

WORDS = ("paris", "park", "party", "test", "testing", "word")


def _argument(name: str, description: str) -> Message:
    return {"name": name, "description": description, "required": True}


DEFINITIONS: list[Message] = [
    {"name": "test_simple_prompt", "description": "A prompt without arguments"},
    {
        "name": "test_prompt_with_arguments",
        "title": "With arguments",
        "description": "A prompt that repeats its two arguments",
        "arguments": [_argument("arg1", "The first word"), _argument("arg2", "The second word")],
    },
    {
        "name": "test_prompt_with_embedded_resource",
        "description": "A prompt that carries a resource",
        "arguments": [_argument("resourceUri", "The URI to carry it under")],
    },
    {"name": "test_prompt_with_image", "description": "A prompt that carries a picture"},
    {
        "name": "test_input_required_result_prompt",
        "description": "A prompt that first asks what it is about",
    },
]


async def simple(call: Call) -> list[Message]:
    return [text("A simple prompt, without arguments.")]


async def with_arguments(call: Call) -> list[Message]:
    first, second = call.arguments.get("arg1", ""), call.arguments.get("arg2", "")
    return [text(f"Prompt with arg1={first!r} and arg2={second!r}")]


async def with_embedded_resource(call: Call) -> list[Message]:
    uri = str(call.arguments.get("resourceUri", "test://example-resource"))
    return [
        embedded(uri, "text/plain", "The text of an embedded resource."),
        text("Please read the resource above."),
    ]


async def with_image(call: Call) -> list[Message]:
    return [picture(), text("Please look at the picture above.")]


async def with_question(call: Call) -> list[Message]:
    question = form("What is the prompt about?", context={"type": "string"})
    answer = (await call.ask({"user_context": question}))["user_context"]
    return [text(f"Prompt about {answer.get('content', {}).get('context', 'nothing')}")]


PROMPTS: dict[str, Prompt] = {
    "test_simple_prompt": simple,
    "test_prompt_with_arguments": with_arguments,
    "test_prompt_with_embedded_resource": with_embedded_resource,
    "test_prompt_with_image": with_image,
    "test_input_required_result_prompt": with_question,
}


async def get(call: Call) -> Message:
    """The result of prompts/get without what an era adds."""
    prompt = PROMPTS.get(str(call.params.get("name")))
    if prompt is None:
        raise BadParams(f"No prompt {call.params.get('name')!r}")
    return {"messages": [{"role": "user", "content": block} for block in await prompt(call)]}


def complete(params: Message) -> Message:
    """The result of completion/complete: words that go on from what was typed."""
    reference, argument = params.get("ref"), params.get("argument")
    if not isinstance(reference, dict) or not isinstance(argument, dict):
        raise BadParams("ref and argument have to be objects")
    if reference.get("type") == "ref/prompt" and reference.get("name") not in PROMPTS:
        raise BadParams(f"No prompt {reference.get('name')!r}")
    typed = str(argument.get("value", ""))
    values = [word for word in WORDS if word.startswith(typed)]
    return {"completion": {"values": values, "total": len(values), "hasMore": False}}
