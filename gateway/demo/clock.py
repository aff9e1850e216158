"""Tell the time anywhere, and pick a number: facts a model cannot know by itself."""

import random
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

from gateway.demo.conversation import serve
from gateway.demo.server import Server
from gateway.demo.tools import HARMLESS, Answer, Refused, Tool

FAR = 1_000_000_000
"""How far from zero a random number may lie; any language reads that as an exact integer."""


def get_time(timezone: str) -> Answer:
    now = datetime.now(_zone(timezone))
    return Answer(
        {
            "time": now.isoformat(timespec="seconds"),
            "weekday": now.strftime("%A"),
            "timezone": timezone,
        }
    )


def get_random_number(low: int, high: int) -> Answer:
    if low > high:
        raise Refused(f"low must not be above high, but {low} is above {high}.")
    return Answer({"number": random.randint(low, high)})


def _zone(name: str) -> tzinfo:
    if name == "UTC":  # known even where no time zone database is installed
        return UTC
    try:
        return ZoneInfo(name)
    # Which error it is depends on what the name happens to be as a path in the database.
    except (KeyError, ValueError, OSError):
        raise Refused(
            f"There is no time zone {name!r}. Use an IANA name such as"
            " Europe/Berlin, America/New_York or Asia/Tokyo; capitals matter."
        ) from None


GET_TIME = Tool(
    {
        "name": "get_time",
        "title": "Get the time",
        "description": "The current date, time and weekday in a time zone.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "timezone": {
                    "type": "string",
                    "description": "An IANA time zone name, such as Europe/Berlin.",
                    "default": "UTC",
                },
            },
            "additionalProperties": False,
        },
        "outputSchema": {
            "type": "object",
            "properties": {
                "time": {"type": "string", "format": "date-time"},
                "weekday": {"type": "string"},
                "timezone": {"type": "string"},
            },
            "required": ["time", "weekday", "timezone"],
        },
        "annotations": HARMLESS,
    },
    get_time,
)

GET_RANDOM_NUMBER = Tool(
    {
        "name": "get_random_number",
        "title": "Get a random number",
        "description": "A random integer between two bounds, both included.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "low": {
                    "type": "integer",
                    "description": "The smallest number it may be.",
                    "minimum": -FAR,
                    "maximum": FAR,
                    "default": 1,
                },
                "high": {
                    "type": "integer",
                    "description": "The largest number it may be.",
                    "minimum": -FAR,
                    "maximum": FAR,
                    "default": 100,
                },
            },
            "additionalProperties": False,
        },
        "outputSchema": {
            "type": "object",
            "properties": {"number": {"type": "integer"}},
            "required": ["number"],
        },
        "annotations": HARMLESS,
    },
    get_random_number,
)


def main() -> None:
    serve(Server(name="clock", title="Clock", tools=(GET_TIME, GET_RANDOM_NUMBER)))


if __name__ == "__main__":
    main()
