"""A scriptable MCP server on stdin and stdout, well behaved unless told otherwise.

Standard library only; starts in about 30 ms. Run `python fake.py [FLAGS]`; tests build its
configuration with `tests.kit.fakes.fake(...)`. The wire is in `fake_wire`, what it offers in
`fake_tools`. Calls run at the same time, each in a thread of its own.

Flags, all optional:

    --era both|legacy|modern     eras it serves (both); `--lock` keeps to the first one used
    --versions A,B               legacy revisions it accepts (all four), the last one is offered to
                                 others; with `--picky` others are refused with -32602
    --name NAME                  serverInfo.name (fake)          --instructions TEXT
    --without A,B                capabilities left out: tools resources prompts logging completions
    --only A,B                   list only these tools (all can still be called)
    --tools N                    N more tools, extra_0 ... ; they echo their arguments
    --tools-file FILE            list exactly the JSON array in FILE instead; they echo
    --page N                     lists come in pages of N
    --stuck-cursor               ... whose cursor never advances
    --malformed                  four broken tools among the good ones
    --start-delay S              silent for S seconds before reading anything
    --exit-at-start CODE         leave at once
    --say TEXT                   write TEXT to stderr first of all
    --fail-first N               leave with code 1 the first N starts (needs --starts)
    --exit-after-list            leave with code 0 half a moment after answering tools/list
    --initialize answer|error|silent|exit
    --discover answer|error|silent|exit|poison   poison: silent, and dies (1) of the next line
    --unknown error|silent|exit  what an unknown method does
    --banner                     text, blank lines and JSON that is no message before anything else
    --noise                      the same before each message    --bom      first bytes EF BB BF
    --crlf                       lines end in CR LF              --chunk N  write N bytes at a time
    --early-log                  a log notification before initialize is answered
    --late-flood BYTES           that much stderr at start, before reading
    --ignore-eof, --ignore-term  outlive the end of stdin, SIGTERM; --stubborn is both
    --grandchild                 start a sleeping child of its own at start (inherits the pipes)
    --record FILE                append each line it reads       --starts FILE   append its pid

Tools (arguments in brackets, with their defaults):

    echo [text, ...]             the text, or all arguments as JSON; and structuredContent
                                 {arguments, meta}
    whoami                       pid, pgid, cwd, argv, era, revision, client, calls, as JSON
    env [names]                  these variables of its environment (all without names)
    sleep [ms=100, stubborn]     answers later; silent if cancelled (stubborn: answers anyway)
    hang                         never answers, until cancelled
    progress [steps=3, ms=10, hang]  progress (if given a token), then answers
    log [count=1, level=info, text]  log notifications
    fail [text]                  isError: true                   error [code=-32000, message, data]
    crash [code=1, signal, stderr]   leaves in the middle of the call
    huge [bytes=1048576, ms]     a text of that many bytes       rich   every kind of content
    endless [bytes]              that many bytes with no newline, then a newline, then the answer
    raw [text]                   writes the text as a line of its own first, then answers
    odd [shape, right=true]      an answer of a wrong shape, then (right) the proper one; shapes:
                                 unknown_id string_id null_id no_id both neither null_result
                                 no_jsonrpc array twice request_like
    ask [method=ping, params, ms]  asks the client and answers with what came back as JSON (modern:
                                 an input_required round, except ping)
    add_tool [name], remove_tool [name]   changes the list and announces it
    notify [method, params]      sends that notification         touch [uri]  resources/updated
    stderr [lines=1, text, bytes]    writes to stderr
    close_stdout, stop_reading   answers, then does so and lives on
    spawn [ignore_term]          starts a sleeping grandchild in its group; answers with its pid

Resources fake://plain and fake://blob, template fake://item/{id}, prompts greet [name] and plain,
completion for both. Unknown tools and prompts are -32602, unknown resources -32002 or -32602.
"""

import argparse
import os
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.kit.servers.fake_tools import spawn_sleeper
from tests.kit.servers.fake_wire import Conversation

LEGACY = "2024-11-05,2025-03-26,2025-06-18,2025-11-25"
SWITCHES = (
    *("lock", "picky", "stuck-cursor", "malformed", "exit-after-list", "banner", "noise", "bom"),
    *("crlf", "early-log", "ignore-eof", "ignore-term", "stubborn", "grandchild"),
)


def options(argv: list[str]) -> argparse.Namespace:
    words = argparse.ArgumentParser(allow_abbrev=False)
    words.add_argument("--era", choices=("both", "legacy", "modern"), default="both")
    words.add_argument("--initialize", choices=("answer", "error", "silent", "exit"))
    words.add_argument("--discover", choices=("answer", "error", "silent", "exit", "poison"))
    words.add_argument("--unknown", choices=("error", "silent", "exit"), default="error")
    words.add_argument("--versions", type=_names, default=_names(LEGACY))
    words.add_argument("--without", type=_names, default=())
    words.add_argument("--only", type=_names)
    words.add_argument("--name", default="fake")
    for text in ("instructions", "say"):
        words.add_argument(f"--{text}")
    for file in ("tools-file", "record", "starts"):
        words.add_argument(f"--{file}", type=Path)
    for number in ("tools", "page", "chunk", "late-flood", "fail-first"):
        words.add_argument(f"--{number}", type=int, default=0)
    words.add_argument("--start-delay", type=float, default=0.0)
    words.add_argument("--exit-at-start", type=int)
    for switch in SWITCHES:
        words.add_argument(f"--{switch}", action="store_true")
    return words.parse_args(argv)


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def count_start(file: Path) -> int:
    """Add this start to the file. Returns how many there have been, this one included."""
    with file.open("a") as starts:
        starts.write(f"{os.getpid()}\n")
    return len(file.read_text().splitlines())


def begin(told: argparse.Namespace) -> None:
    """All that happens before the first line is read; may end the program."""
    if told.stubborn or told.ignore_term:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    starts = count_start(told.starts) if told.starts else 0
    if told.say:
        print(told.say, file=sys.stderr, flush=True)
    if told.late_flood:
        sys.stderr.write(("x" * 99 + "\n") * (told.late_flood // 100))
        sys.stderr.flush()
    if told.grandchild:
        spawn_sleeper(ignore_term=False, inherit=True)
    if told.exit_at_start is not None:
        sys.exit(told.exit_at_start)
    if starts and starts <= told.fail_first:
        sys.exit(1)
    time.sleep(told.start_delay)


def main() -> None:
    told = options(sys.argv[1:])
    begin(told)
    conversation = Conversation(told)
    conversation.run()
    while told.stubborn or told.ignore_eof:
        signal.pause()
    # Threads of unanswered calls must not keep the program alive, nor its exit from being clean.
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
