"""What a server's process is given, and what it is not."""

import asyncio
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from tests.kit.fakes import fake, fake_argv
from tests.kit.waiting import eventually_async, run
from tests.servers.gate import gate

TOOLS = ("--only", "env,whoami")


def _environment(folder: Path, around: dict[str, str], **section: Any) -> dict[str, str]:
    """All that a server finds in its environment, under a gateway with `around` in its own."""

    async def converse() -> dict[str, str]:
        async with gate(
            folder, {"it": fake(*TOOLS, **section, protocol="legacy")}, environ=around
        ) as it:
            await it.ready()
            async with it.modern() as client:
                return dict(json.loads((await client.call("it__env")).text))

    return run(converse())


AROUND = {
    "HTTPS_PROXY": "http://proxy.example:3128",
    "no_proxy": "localhost",
    "SSL_CERT_FILE": "/etc/ssl/corporate.pem",
    "LC_TIME": "de_DE.UTF-8",
    "XDG_CACHE_HOME": "/var/cache/somebody",
    "GITHUB_TOKEN": "ghp_of_the_gateway",
    "AWS_SECRET_ACCESS_KEY": "aws_of_the_gateway",
    "ONEGATE_TOKEN": "onegate_own",
    "MY_SETTING": "mine",
    "MY_OTHER": "other",
    "BASH_FUNC_x%%": "() { echo harm; }",
    "LC_FUNC": "() { echo harm; }",
}


def test_a_server_gets_what_programs_need_and_none_of_the_gateways_secrets(tmp_path: Path) -> None:
    """B96."""
    found = _environment(tmp_path, AROUND, env={"ITS_OWN": "value"})
    passed = ("HTTPS_PROXY", "no_proxy", "SSL_CERT_FILE", "LC_TIME", "XDG_CACHE_HOME")
    assert {name: found.get(name) for name in passed} == {name: AROUND[name] for name in passed}
    assert found["ITS_OWN"] == "value"
    assert found["HOME"] == str(tmp_path)
    assert "PATH" in found
    for name in set(AROUND) - set(passed):
        assert name not in found, name
    assert not [name for name in found if name.startswith("ONEGATE")]


def test_more_is_inherited_by_name_or_glob_but_never_the_gateways_own(tmp_path: Path) -> None:
    found = _environment(tmp_path, AROUND, env_inherit=["MY_*", "GITHUB_TOKEN", "ONEGATE_*"])
    assert (found["MY_SETTING"], found["MY_OTHER"]) == ("mine", "other")
    assert found["GITHUB_TOKEN"] == "ghp_of_the_gateway"
    assert "AWS_SECRET_ACCESS_KEY" not in found
    assert "ONEGATE_TOKEN" not in found


def test_a_file_of_variables_lies_over_what_is_inherited_and_under_env(tmp_path: Path) -> None:
    (tmp_path / "its.env").write_text(
        "# a comment\n\nexport MY_SETTING='from the file' # why\nLC_TIME=C\n"
        'QUOTED="two\\nlines"\nBARE = with spaces # and a comment\nEMPTY=\nHASH=a#b\n'
    )
    found = _environment(
        tmp_path, AROUND, env_file="its.env", env={"LC_TIME": "en_GB.UTF-8"}, env_inherit=["MY_*"]
    )
    assert found["MY_SETTING"] == "from the file"
    assert found["LC_TIME"] == "en_GB.UTF-8"
    assert found["QUOTED"] == "two\nlines"
    assert found["BARE"] == "with spaces"
    assert found["EMPTY"] == ""
    assert found["HASH"] == "a#b"


def test_a_changed_file_of_variables_counts_from_the_next_start(tmp_path: Path) -> None:
    file = tmp_path / "its.env"
    file.write_text("STAGE=one")
    server = fake("--only", "env,crash", env_file="its.env")

    async def converse() -> None:
        async with gate(tmp_path, {"it": server}) as it:
            await it.ready()
            async with it.modern() as client:
                asked = {"names": ["STAGE"]}
                assert json.loads((await client.call("it__env", asked)).text) == {"STAGE": "one"}
                file.write_text("STAGE=two")
                await client.call("it__crash")
                assert json.loads((await client.call("it__env", asked)).text) == {"STAGE": "two"}

    run(converse())


def test_a_pipe_of_variables_is_waited_for_by_its_own_server_alone(tmp_path: Path) -> None:
    """Password managers mount such files: nothing comes before their user has agreed."""
    os.mkfifo(tmp_path / "its.env")
    servers = {
        "it": fake("--only", "env", env_file="its.env", protocol="modern"),
        "other": fake("--only", "echo", protocol="modern"),
    }

    async def converse() -> None:
        async with gate(tmp_path, servers) as it, it.modern() as client:
            await eventually_async(lambda: it.server("other").is_ready, what="the other server")
            assert (await client.call("other__echo", {"text": "x"})).text == "x"
            assert (await it.report("it"))["state"] == "starting"
            await asyncio.to_thread((tmp_path / "its.env").write_text, "STAGE=one")
            await it.ready()
            told = await client.call("it__env", {"names": ["STAGE"]})
            assert json.loads(told.text) == {"STAGE": "one"}

    run(converse())


def test_values_are_replaced_once_and_arguments_meet_no_shell(tmp_path: Path) -> None:
    """B95."""
    around = {"STAGE": "${HOME} $(touch harm) `touch harm`", "EMPTY": ""}
    env = {"A": "${STAGE}", "B": "${NO_SUCH:-default}", "C": "$${STAGE}", "D": "x${EMPTY}y"}
    server = fake(*TOOLS, "--name", "; touch harm; $(touch harm) 'x' \"y\" *", env=env)

    async def converse() -> None:
        async with gate(tmp_path, {"it": server}, environ=around) as it:
            await it.ready()
            async with it.modern() as client:
                found = json.loads((await client.call("it__env")).text)
                me = json.loads((await client.call("it__whoami")).text)
        assert found["A"] == around["STAGE"]
        assert (found["B"], found["C"], found["D"]) == ("default", "${STAGE}", "xy")
        assert me["argv"][-1] == "; touch harm; $(touch harm) 'x' \"y\" *"

    run(converse())
    assert not list(tmp_path.rglob("harm"))


def test_each_server_leads_a_session_of_its_own_in_its_own_folder(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    servers = {"here": fake(*TOOLS), "there": fake(*TOOLS, cwd="work")}

    async def converse() -> None:
        async with gate(tmp_path, servers) as it:
            await it.ready()
            async with it.modern() as client:
                here = json.loads((await client.call("here__whoami")).text)
                there = json.loads((await client.call("there__whoami")).text)
        for me in (here, there):
            assert me["pid"] == me["pgid"] == me["sid"] != os.getpid()
        assert there["cwd"] == str(tmp_path / "work")
        assert here["cwd"] == os.getcwd()

    run(converse())


def test_a_command_is_looked_up_on_the_servers_own_path(tmp_path: Path) -> None:
    """B94: the one from its `env`, not the gateway's."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "my-server"
    interpreter = shutil.which("sh")
    program.write_text(f'#!{interpreter}\nexec {" ".join(fake_argv(*TOOLS))} "$@"\n')
    program.chmod(0o755)

    async def converse() -> None:
        section = {"command": "my-server", "env": {"PATH": str(tmp_path / "bin")}}
        missing = {"command": "my-server"}
        around = {"PATH": "/nonexistent"}
        servers = {"it": section, "missing": missing}
        async with gate(tmp_path, servers, environ=around) as it:
            await it.ready("it")
            report = await it.becomes("failed", "missing")
            assert "'my-server' not found" in report["last_error"]
            assert "/nonexistent" in report["last_error"], "where it looked"
            assert "give the command's full path" in report["last_error"]

    run(converse())


def test_python_is_found_where_path_has_none(tmp_path: Path) -> None:
    async def converse() -> None:
        section = {"command": Path(sys.executable).name, "args": fake_argv(*TOOLS)[1:]}
        async with gate(tmp_path, {"it": section}, environ={"PATH": "/nonexistent"}) as it:
            await it.ready()
            assert (await it.report())["tools"] == 2

    run(converse())


def test_a_program_that_is_installed_later_is_found_by_the_next_try(tmp_path: Path) -> None:
    program = tmp_path / "late"
    section = {"command": str(program)}

    async def converse() -> None:
        async with gate(tmp_path, {"it": section}) as it:
            await it.becomes("failed")
            program.write_text(f"#!/bin/sh\nexec {' '.join(fake_argv(*TOOLS))}\n")
            program.chmod(0o755)
            it.server().main.kicked.set()
            await it.ready()
            assert (await it.report())["tools"] == 2

    run(converse())
