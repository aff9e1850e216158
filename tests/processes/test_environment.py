"""What a child is given of its surroundings, and how its program is found."""

import os
import sys
from pathlib import Path

import pytest

from gateway.config.model import StdioServer
from gateway.downstream.environment import CannotStart, Launch, find_program, inherited

OURS = os.path.dirname(sys.executable)


def program_at(path: Path, mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(mode)
    return path


def test_proxies_certificates_and_locale_are_inherited_and_secrets_are_not() -> None:
    """Case B96."""
    wanted = {
        **dict.fromkeys(("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "XDG_CACHE_HOME"), "x"),
        **dict.fromkeys(("HTTPS_PROXY", "https_proxy", "NO_PROXY", "SSL_CERT_FILE"), "x"),
        **dict.fromkeys(("REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "TZ", "USER"), "x"),
    }
    unwanted = dict.fromkeys(
        ("GATEWAY_TOKEN", "AWS_SECRET_ACCESS_KEY", "ONEGATE_CONFIG", "PYTHONPATH", "PATHS"), "x"
    )
    assert inherited({**wanted, **unwanted}) == wanted


@pytest.mark.parametrize("pattern", ["*", "ONEGATE_*", "onegate_token", "ONEGATE_TOKEN"])
def test_what_is_ours_is_never_inherited(pattern: str) -> None:
    environ = {"ONEGATE_TOKEN": "x", "onegate_token": "x", "OTHER": "x"}
    assert set(inherited(environ, [pattern])) <= {"OTHER"}


def test_more_is_inherited_by_name_or_glob() -> None:
    environ = {"AWS_PROFILE": "a", "AWS_REGION": "b", "GH_TOKEN": "c", "GH_HOST": "d"}
    assert inherited(environ, ["AWS_*", "GH_HOST"]) == {
        "AWS_PROFILE": "a",
        "AWS_REGION": "b",
        "GH_HOST": "d",
    }


def test_a_shell_function_is_no_variable() -> None:
    assert inherited({"LANG": "() { :; }; echo owned"}) == {}


def test_the_configuration_lies_over_the_file_and_the_file_over_what_is_inherited(
    tmp_path: Path,
) -> None:
    file = tmp_path / "env"
    file.write_text("LANG=file\nTZ=file\nONLY=file\n")
    section = StdioServer(command="/bin/cat", env={"TZ": "section"}, env_file=file)
    environ = {"LANG": "ours", "TZ": "ours", "HOME": "/home/x"}
    launch = Launch.of("it", section, environ, 1000)
    assert (launch.argv, launch.line_bytes) == (("/bin/cat",), 1000)
    assert launch.program().env == {
        "LANG": "file",
        "TZ": "section",
        "ONLY": "file",
        "HOME": "/home/x",
    }
    file.write_text("LANG=changed\n")
    assert launch.program().env["LANG"] == "changed"


def test_the_command_is_found_on_the_childs_path_not_ours(tmp_path: Path) -> None:
    """Case B94."""
    mine = program_at(tmp_path / "bin" / "npx")
    section = StdioServer(command="npx", env={"PATH": f"/nonexistent:{mine.parent}"})
    launch = Launch.of("it", section, {"PATH": "/somewhere/else"})
    assert launch.program().path == str(mine)


def test_a_path_is_taken_from_the_childs_folder(tmp_path: Path) -> None:
    mine = program_at(tmp_path / "bin" / "server")
    assert find_program(["bin/server"], {"PATH": ""}, tmp_path) == str(mine)
    assert find_program(["./bin/server"], {"PATH": ""}, tmp_path) == str(mine)


def test_python_is_found_even_where_path_has_none(tmp_path: Path) -> None:
    name = Path(sys.executable).name
    assert find_program([name], {"PATH": "/nonexistent"}, tmp_path) == sys.executable


def test_python_means_the_users_own_except_for_our_own_modules(tmp_path: Path) -> None:
    theirs = program_at(tmp_path / "python")
    program_at(tmp_path / "python3")
    env = {"PATH": str(tmp_path)}
    assert find_program(["python", "-m", "mcp_server_time"], env, None) == str(theirs)
    assert find_program(["python", "-m", "gateways"], env, None) == str(theirs)
    for name in ("python", "python3"):
        found = find_program([name, "-m", "gateway.demo.dice"], env, None)
        assert os.path.dirname(found) == OURS


def test_a_missing_command_is_told_with_the_path_searched_and_the_folder(tmp_path: Path) -> None:
    with pytest.raises(CannotStart) as caught:
        find_program(["npx-not-there"], {"PATH": "/nonexistent:/usr/nowhere"}, tmp_path)
    for words in ("'npx-not-there'", "/nonexistent:/usr/nowhere", str(tmp_path)):
        assert words in caught.value.message
    assert caught.value.permanent


def test_a_file_that_may_not_be_executed_is_not_called_missing(tmp_path: Path) -> None:
    file = program_at(tmp_path / "server", 0o644)
    for command in ("server", "./server"):
        with pytest.raises(CannotStart, match="not executable") as caught:
            find_program([command], {"PATH": str(tmp_path)}, tmp_path)
        assert str(file) in caught.value.message


@pytest.mark.parametrize(("command", "words"), [("./gone", "does not exist"), ("./", "folder")])
def test_a_path_that_leads_nowhere_says_so(tmp_path: Path, command: str, words: str) -> None:
    with pytest.raises(CannotStart, match=words):
        find_program([command], {}, tmp_path)


@pytest.mark.parametrize(("name", "words"), [("gone", "does not exist"), ("file", "not a folder")])
def test_a_missing_working_folder_is_told_apart_from_a_missing_command(
    tmp_path: Path, name: str, words: str
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotStart, match=words) as caught:
        Launch("it", ("/bin/cat",), cwd=tmp_path / name).program()
    assert "cwd" in caught.value.message


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=b", "b"),
        ("export A = b # comment", "b"),
        ("A=b#c", "b#c"),
        ("A='b # $HOME \\n'", "b # $HOME \\n"),
        ('A="b \\"c\\" \\n\\\\" # comment', 'b "c" \n\\'),
        ("A=", ""),
        ("A=x=y==", "x=y=="),
        ("A=`touch owned` $(touch owned)", "`touch owned` $(touch owned)"),
        ("\ufeffA=b\r", "b"),
    ],
)
def test_an_env_file_holds_text_not_code(tmp_path: Path, line: str, value: str) -> None:
    file = tmp_path / "env"
    file.write_bytes(f"{line}\n\n# comment\n".encode())
    assert Launch("it", ("/bin/cat",), env_file=file).program().env == {"A": value}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"A=ok\nhunter2\n", "line 2: expected NAME=VALUE"),
        (b'A="hunter2\n', "line 1"),
        (b"A=\xffhunter2", "not UTF-8"),
        (None, "No such file"),
    ],
)
def test_a_bad_env_file_is_told_by_line_without_its_content(
    tmp_path: Path, content: bytes | None, words: str
) -> None:
    file = tmp_path / "env"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(CannotStart, match=words) as caught:
        Launch("it", ("/bin/cat",), env_file=file).program()
    assert "hunter2" not in caught.value.message
    assert str(file) in caught.value.message


def test_what_the_configuration_gives_is_secret_unless_it_plainly_is_not(tmp_path: Path) -> None:
    section = StdioServer(
        command="/bin/cat",
        args=("--api-key", "key-argument", "--token=token-argument", "--verbose", "plain-words"),
        env={"API_KEY": "/looks/like/a/path", "DATA": "/srv/data", "LEVEL": "debug", "X": "s3cret"},
    )
    secrets = Launch.of("it", section, {"HOME": "/home/someone"}).program().secrets
    assert set(secrets) == {"key-argument", "token-argument", "/looks/like/a/path", "s3cret"}
