"""What can be started but hardly means what it says, and globs compared with each other."""

from fnmatch import fnmatchcase
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.config.globs import can_meet, covers, literal, tokens
from gateway.config.load import examine
from gateway.config.model import StdioServer
from tests.config.corpus import load_text

TWO = "servers: {time: {command: here}, mail: {command: here}}\n"


def _which(server: StdioServer) -> str | None:
    return "/bin/here" if server.command == "here" else None


def _doubts(text: str, folder: Path) -> list[str]:
    found = examine(load_text(text, folder), _which)
    assert all(complaint.severity == "warning" for complaint in found)
    return [str(complaint).splitlines()[0].removeprefix("onegate.yaml:") for complaint in found]


def test_a_sound_configuration_raises_no_doubts(tmp_path: Path) -> None:
    rules = 'tools: [{match: "time__*", timeout: 1s}, {match: "*", timeout: 2s, queue: 1}]'

    assert _doubts(TWO + rules, tmp_path) == []


def test_a_missing_command_is_found_where_it_is_written(tmp_path: Path) -> None:
    text = (
        "servers:\n  one: {command: npx -y server}\n  two: {command: gone, args: [a b]}\n"
        "  off: {command: gone, disabled: true}\n"
    )

    missing = "no such program on the PATH that this server gets"
    assert _doubts(text, tmp_path) == [
        f"2:18: warning: servers.one.command: {missing}; what it is given goes under `args`",
        f"3:18: warning: servers.two.command: {missing}",
    ]


def test_credentials_in_the_clear_are_doubted_unless_they_stay_near(tmp_path: Path) -> None:
    text = (
        "servers:\n  far: {url: http://far.example/mcp, headers: {Authorization: x}}\n"
        "  near: {url: http://127.0.0.1:80/mcp, headers: {Authorization: x}, ca: ./ca.pem}\n"
        "  inside: {url: http://tracker:8080/mcp, headers: {Authorization: x}}\n"
        "  open: {url: http://far.example/mcp}\n"
    )

    assert _doubts(text, tmp_path) == [
        "2:14: warning: servers.far.url: its headers travel in the clear; use https",
        "3:73: warning: servers.near.ca: of no use: the address is not https",
    ]


def test_servers_with_one_prefix_will_clash(tmp_path: Path) -> None:
    text = (
        "servers:\n  a: {command: here}\n  b: {command: here, prefix: a}\n"
        '  c: {command: here, prefix: ""}\n  d: {command: here, prefix: ""}\n'
        "  e: {command: here, prefix: a, disabled: true}\n"
    )

    assert _doubts(text, tmp_path) == [
        "3:30: warning: servers.b.prefix: the same prefix as `a`: their tools may clash",
        "5:30: warning: servers.d.prefix: the same prefix as `c`: their tools may clash",
    ]


def test_a_rule_for_no_server_can_never_match(tmp_path: Path) -> None:
    rules = 'tools: [{match: "tiem__*", queue: 1}, {match: "t?m[ae]__x", queue: 1}]\n'
    never = "can never match: names begin with a server's prefix, and none fits"

    assert _doubts(TWO + rules, tmp_path) == [f"2:17: warning: tools[0].match: {never}"]
    bare = 'servers: {time: {command: here, prefix: ""}}\n'
    assert _doubts(bare + rules, tmp_path) == []


def test_a_rule_that_denies_resources_by_their_uri_is_no_mistake(tmp_path: Path) -> None:
    assert _doubts(TWO + 'tools: [{match: "file:///etc/*", decision: deny}]', tmp_path) == []


def test_a_prefix_that_names_may_be_too_short_for_proves_nothing(tmp_path: Path) -> None:
    text = "servers: {a-rather-long-name: {command: here}}\nnames: {longest: 16}\n"

    assert _doubts(text + 'tools: [{match: "x*", queue: 1}]', tmp_path) == []


def test_a_rule_whose_settings_are_all_given_before_can_never_matter(tmp_path: Path) -> None:
    rules = (
        "tools:\n"
        '  - {match: "*", timeout: 1s}\n'
        '  - {match: "time__*", queue: 1}\n'
        '  - {match: "time__now", timeout: 2s, queue: 2}\n'
        '  - {match: "mail__now", timeout: 2s, queue: 2}\n'
    )

    never = "can never matter: all it gives is given before, by"
    assert _doubts(TWO + rules, tmp_path) == [
        f"5:5: warning: tools[2]: {never} tools[0] and tools[1]",
    ]


def test_a_rule_that_gives_nothing_changes_nothing(tmp_path: Path) -> None:
    assert _doubts(TWO + 'tools: [{match: "*"}]', tmp_path) == [
        "2:9: warning: tools[0]: gives no setting, so it changes nothing"
    ]


def test_no_servers_is_worth_a_word(tmp_path: Path) -> None:
    assert _doubts("log: {level: info}", tmp_path) == [
        " warning: no servers are configured, so there is nothing to offer"
    ]


GLOBS = st.text("ab*?", max_size=6) | st.sampled_from(["[ab]*", "[!a]", "*[ab]", "a[b]?", "[a"])
NAMES = st.text("abc[", max_size=6)


@settings(max_examples=200)
@given(GLOBS, GLOBS, st.lists(NAMES, min_size=5))
def test_what_a_covered_glob_matches_is_matched_by_the_cover(
    outer: str, inner: str, names: list[str]
) -> None:
    if covers(outer, inner):
        assert all(fnmatchcase(name, outer) for name in names if fnmatchcase(name, inner))


@settings(max_examples=200)
@given(GLOBS, GLOBS, NAMES)
def test_globs_that_match_one_name_can_meet(one: str, other: str, name: str) -> None:
    if fnmatchcase(name, one) and fnmatchcase(name, other):
        assert can_meet(tokens(one), tokens(other))
        assert can_meet(tokens(one), literal(name))


def test_covers_sees_the_usual_cases() -> None:
    for outer, inner in [("*", "a*b"), ("a*", "ab*"), ("*b", "*ab"), ("a?c", "abc"), ("*", "")]:
        assert covers(outer, inner), (outer, inner)
    for outer, inner in [("a*", "*"), ("a?", "a*"), ("a", "?"), ("", "*"), ("*a*", "*b*")]:
        assert not covers(outer, inner), (outer, inner)


def test_globs_with_nothing_in_common_cannot_meet() -> None:
    assert not can_meet(tokens("time__*"), tokens("mail__*"))
    assert not can_meet(tokens("*_x"), tokens("*_y"))
    assert not can_meet(tokens("a?"), literal("abc"))
    assert can_meet(tokens("*delete*"), (*literal("time__"), "*"))
