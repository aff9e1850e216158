"""The values that come out: defaults, what follows from what, and that nothing changes them."""

from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from gateway.config.model import Auth, Calls, Config, StdioServer, Token
from gateway.config.units import Address, Rate
from tests.config.corpus import CORPUS, ENVIRON, elsewhere, files_of, load_file, load_text, program

SHA = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"


def test_the_defaults_are_those_of_the_documentation() -> None:
    config, server = Config(), StdioServer(command="x")

    assert [str(one) for one in config.listen] == ["127.0.0.1:8765"]
    assert str(config.admin) == "127.0.0.1:8766"
    assert (config.default_decision, config.auth.mode, config.names.longest) == (
        "allow",
        "unset",
        50,
    )
    assert (config.calls.path, config.calls.stderr, config.calls.arguments) == (None, True, "none")
    limits = config.limits
    assert (limits.line_bytes, limits.body_bytes, limits.header_bytes) == (2**24, 2**22, 2**16)
    assert (limits.sessions, limits.session_idle_s) == (10_000, 1800)
    assert (limits.request_s, limits.drain_s) == (30, 10)
    assert (limits.answer_s, limits.rounds) == (600, 10)
    assert (limits.parked, limits.parked_per_principal) == (128, 64)
    assert (limits.parked_call_bytes, limits.parked_total_bytes) == (2**22, 2**26)
    assert (limits.processes, server.processes) == (256, 32)
    assert (server.process_idle_s, server.owned_process_idle_s) == (300, 1800)
    assert (server.start_timeout_s, server.stop_grace_s, server.queue) == (30, 5, 64)
    assert (server.isolation, server.protocol, server.prefix) == ("auto", "auto", None)


def test_everything_written_arrives() -> None:
    (file,) = (file for file in files_of("good") if file.name == "everything.yaml")
    config = load_file(file).config
    time, rule = program(config, "time"), config.tools[0]

    assert config.listen[1:] == (
        Address("::1", 9000),
        Address(path=str(file.parent / "run/onegate.sock")),
    )
    assert config.admin is None
    assert time.args == ("mcp-server-time", "--port", "8080", "--verbose", "true")
    assert dict(time.env) == {
        "TOKEN": ENVIRON["TOKEN"],
        "LITERAL": "${TOKEN} costs $5",
        "OLD": "x",
        "TZ": "UTC",
        "LEVEL": "3",
    }
    assert (time.start_timeout_s, time.stop_grace_s, time.concurrency) == (90, 0, 4)
    assert (time.cwd, time.env_file) == (Path("/home/ann/work"), file.parent / "time.env")
    assert (rule.timeout_s, rule.longest_s, rule.rate) == (0.5, 600, Rate(60, 60))
    assert config.auth.mode == "tokens"
    assert config.auth.tokens[0].sha256 == SHA
    assert (config.calls.path, config.calls.stderr) == (file.parent / "calls.jsonl", True)
    assert config.limits.line_bytes == 32 * 2**20
    assert config.watch
    assert config.instructions == "Ask before you delete.\n"


def test_numbers_in_arguments_stay_as_they_are_written() -> None:
    (file,) = (file for file in files_of("good") if file.name == "norway.yaml")
    one = program(load_file(file).config, "one")

    assert " ".join(one.args) == "yes on off 1:30 007 0x10 1_000 1.10 ~user 2026-11-30"
    assert one.env == {"COUNTRY": "NO", "ZIP": "01234", "FLAG": "true", "null": "null"}


def test_a_server_elsewhere_is_read_as_it_is_written() -> None:
    file = CORPUS / "good" / "remote.yaml"
    loaded = load_file(file)
    tracker, old = elsewhere(loaded.config, "tracker"), elsewhere(loaded.config, "old")

    assert tracker.url == "https://tracker.example/mcp?team=7"
    assert tracker.headers == {"Authorization": f"Bearer {ENVIRON['TOKEN']}", "X-Level": "3"}
    assert (tracker.transport, old.transport) == ("auto", "sse")
    assert (tracker.ca, tracker.cert) == (file.parent / "ca.pem", Path("/home/ann/client.pem"))
    assert (tracker.connect_timeout_s, old.connect_timeout_s) == (5, 10)
    assert {f"Bearer {ENVIRON['TOKEN']}", ENVIRON["TOKEN"]} <= loaded.secrets
    assert "canary" not in repr(loaded.config) + repr(loaded)


def test_clients_files_say_in_their_own_words_how_a_server_is_reached() -> None:
    config = load_file(CORPUS / "good" / "remote_in_a_client_file.json").config
    found = {name: getattr(section, "transport", "") for name, section in config.servers.items()}

    assert found == {
        "one": "http",
        "two": "auto",
        "three": "sse",
        "four": "auto",
        "five": "http",
        "six": "http",
        "seven": "http",
        "eight": "",
    }


def test_nothing_in_a_configuration_can_be_set() -> None:
    config = Config(servers={"one": StdioServer(command="x")})

    with pytest.raises(FrozenInstanceError):
        program(config, "one").command = "y"  # type: ignore[misc]  # that is what is shown


def test_who_may_come_in_follows_from_what_is_written(tmp_path: Path) -> None:
    assert Auth().mode == "unset"
    assert Auth(mode="none").mode == "none"
    assert Auth(tokens=(Token(name="ann", sha256=SHA),)).mode == "tokens"
    assert load_text("auth: none", tmp_path).config.auth == Auth(mode="none")


def test_the_record_goes_to_the_log_unless_it_has_a_file(tmp_path: Path) -> None:
    def calls(written: str) -> Calls:
        return load_text(f"calls: {{{written}}}", tmp_path).config.calls

    file = tmp_path / "a"
    assert (calls("").path, calls("").stderr) == (None, True)
    assert (calls("path: stderr").path, calls("path: stderr").stderr) == (None, True)
    assert (calls("path: a").path, calls("path: a").stderr) == (file, False)
    assert (calls("path: a, stderr: true").path, calls("path: a, stderr: true").stderr) == (
        file,
        True,
    )
    assert calls("stderr: false") == Calls(stderr=False)


def test_servers_keep_the_order_in_which_they_are_written(tmp_path: Path) -> None:
    text = "servers: {c: {command: x}, a: {command: x}, b: {command: x}}"

    assert list(load_text(text, tmp_path).config.servers) == ["c", "a", "b"]
