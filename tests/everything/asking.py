"""Tools that ask the client in mid-call; written once, asked in either era's way."""

from tests.everything.calls import Call
from tests.everything.content import said
from tests.everything.pipe import Message
from tests.everything.questions import filled, form, roots, sample, sampled
from tests.everything.tools import Tool

TEXT: Message = {"type": "string"}
NAME = form("What is your name?", name=TEXT)
CONFIRM = form("Please confirm", ok={"type": "boolean"})
CHOICES = ["option1", "option2", "option3"]
NUMBERED = ("first", "second", "third")


def _titled(word: str) -> list[Message]:
    return [
        {"const": f"value{number}", "title": f"The {which} {word}"}
        for number, which in enumerate(NUMBERED, 1)
    ]


ENUMS = form(
    "Please choose",
    untitledSingle={"type": "string", "enum": CHOICES},
    titledSingle={"type": "string", "oneOf": _titled("option")},
    legacyEnum={
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": [f"The {which} one" for which in NUMBERED],
    },
    untitledMulti={"type": "array", "items": {"type": "string", "enum": CHOICES}},
    titledMulti={"type": "array", "items": {"anyOf": _titled("choice")}},
)
DEFAULTS = form(
    "Please check",
    optional=("name", "age", "score", "status", "verified"),
    name={"type": "string", "default": "John Doe"},
    age={"type": "integer", "default": 30},
    score={"type": "number", "default": 95.5},
    status={"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    verified={"type": "boolean", "default": True},
)


async def sampling(call: Call) -> Message:
    question = sample(str(call.arguments.get("prompt", "")))
    return said(f"The model says: {sampled((await call.ask({'text': question}))['text'])}")


async def elicitation(call: Call) -> Message:
    message = str(call.arguments.get("message", "Who are you?"))
    question = form(message, username=TEXT, email=TEXT)
    return said(f"The user says: {filled((await call.ask({'who': question}))['who'])}")


async def streaming_elicitation(call: Call) -> Message:
    call.progress(1, 2)
    return said(f"The user says: {filled((await call.ask({'user_name': NAME}))['user_name'])}")


async def defaults(call: Call) -> Message:
    return said(f"The form ended: {filled((await call.ask({'form': DEFAULTS}))['form'])}")


async def enums(call: Call) -> Message:
    return said(f"The form ended: {filled((await call.ask({'form': ENUMS}))['form'])}")


async def needs_sampling(call: Call) -> Message:
    call.need("sampling")
    return said("The client can sample.")


async def name(call: Call) -> Message:
    answer = (await call.ask({"user_name": NAME}))["user_name"]
    return said(f"Hello, {answer.get('content', {}).get('name', 'stranger')}!")


async def capital(call: Call) -> Message:
    question = sample("What is the capital of France?")
    answers = await call.ask({"capital_question": question})
    return said(sampled(answers["capital_question"]))


async def list_roots(call: Call) -> Message:
    answer = (await call.ask({"client_roots": roots()}))["client_roots"]
    return said(f"Roots: {', '.join(str(root.get('uri')) for root in answer['roots'])}")


async def confirmed(call: Call) -> Message:
    answer = (await call.ask({"confirm": CONFIRM}, stateful=True))["confirm"]
    return said(f"state-ok: {filled(answer)}")


async def three_at_once(call: Call) -> Message:
    questions = {
        "user_name": NAME,
        "greeting": sample("Please greet", longest=50),
        "client_roots": roots(),
    }
    answers = await call.ask(questions, stateful=True)
    folders = len(answers["client_roots"]["roots"])
    return said(f"{filled(answers['user_name'])}; {sampled(answers['greeting'])}; {folders} roots")


async def two_rounds(call: Call) -> Message:
    first = form("First: what is your name?", name=TEXT)
    second = form("Then: what colour do you like?", color=TEXT)
    who = (await call.ask({"step1": first}, stateful=True))["step1"]
    colour = (await call.ask({"step2": second}, stateful=True))["step2"]
    return said(f"{filled(who)}; {filled(colour)}")


async def what_the_client_can(call: Call) -> Message:
    """Asks only what this client declared, and says so if that is nothing."""
    possible = {"sampling": sample("Say hello"), "elicitation": NAME, "roots": roots()}
    questions = {name: each for name, each in possible.items() if name in call.capabilities}
    if not questions:
        return said("The client can't be asked anything.")
    return said(f"Answered: {', '.join(await call.ask(questions))}")


def _one(name: str, description: str) -> Message:
    properties = {name: {"type": "string", "description": description}}
    return {"type": "object", "properties": properties, "required": [name]}


MRTR = "test_input_required_result"
TOOLS: list[Tool] = [
    Tool("test_sampling", "Asks the model", sampling, _one("prompt", "What to ask")),
    Tool("test_elicitation", "Asks the user", elicitation, _one("message", "What to show")),
    Tool("test_streaming_elicitation", "Reports progress, then asks", streaming_elicitation),
    Tool("test_elicitation_sep1034_defaults", "Asks by a form with defaults", defaults),
    Tool("test_elicitation_sep1330_enums", "Asks by a form of choices", enums),
    Tool("test_missing_capability", "Refuses who can't sample", needs_sampling),
    Tool(f"{MRTR}_elicitation", "Asks the user's name", name),
    Tool(f"{MRTR}_sampling", "Asks the model one question", capital),
    Tool(f"{MRTR}_list_roots", "Asks for the roots", list_roots),
    Tool(f"{MRTR}_request_state", "Asks, and keeps its state at the client", confirmed),
    Tool(f"{MRTR}_multiple_inputs", "Asks three things at once", three_at_once),
    Tool(f"{MRTR}_multi_round", "Asks twice, one after the other", two_rounds),
    Tool(f"{MRTR}_tampered_state", "Asks, and refuses a state that was altered", confirmed),
    Tool(f"{MRTR}_capabilities", "Asks what the client can answer", what_the_client_can),
]
