"""Roll dice and count words: the smallest useful MCP server."""

import random

from gateway.demo.conversation import serve
from gateway.demo.server import Server
from gateway.demo.tools import HARMLESS, Answer, Tool


def roll_dice(sides: int, count: int) -> Answer:
    rolls = [random.randint(1, sides) for _ in range(count)]
    return Answer({"rolls": rolls, "total": sum(rolls)})


def word_count(text: str) -> Answer:
    return Answer(
        {
            "words": len(text.split()),
            "characters": len(text),
            "lines": len(text.splitlines()),
        }
    )


ROLL_DICE = Tool(
    {
        "name": "roll_dice",
        "title": "Roll dice",
        "description": "Roll one or more dice. Returns each roll and their total.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "sides": {
                    "type": "integer",
                    "description": "How many sides each die has.",
                    "minimum": 2,
                    "maximum": 1000,
                    "default": 6,
                },
                "count": {
                    "type": "integer",
                    "description": "How many dice to roll.",
                    "minimum": 1,
                    "maximum": 100,
                    "default": 1,
                },
            },
            "additionalProperties": False,
        },
        "outputSchema": {
            "type": "object",
            "properties": {
                "rolls": {"type": "array", "items": {"type": "integer"}},
                "total": {"type": "integer"},
            },
            "required": ["rolls", "total"],
        },
        "annotations": HARMLESS,
    },
    roll_dice,
)

WORD_COUNT = Tool(
    {
        "name": "word_count",
        "title": "Count words",
        "description": "Count the words, characters and lines of a text.",
        "inputSchema": {
            "type": "object",
            "properties": {"text": {"type": "string", "description": "The text to count."}},
            "required": ["text"],
            "additionalProperties": False,
        },
        "outputSchema": {
            "type": "object",
            "properties": {
                "words": {"type": "integer"},
                "characters": {"type": "integer"},
                "lines": {"type": "integer"},
            },
            "required": ["words", "characters", "lines"],
        },
        "annotations": HARMLESS,
    },
    word_count,
)


def main() -> None:
    serve(Server(name="dice", title="Dice", tools=(ROLL_DICE, WORD_COUNT)))


if __name__ == "__main__":
    main()
