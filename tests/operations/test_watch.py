"""`watch: true`: the gateway notices by itself that its files changed, however that is done."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.kit.fakes import fake
from tests.kit.gateway import running_gateway
from tests.kit.waiting import eventually_async, run
from tests.operations.changing import Changing, changing

SERVERS = {"a": fake("--only", "echo")}


@asynccontextmanager
async def watching(folder: Path, *, watch: bool = True, **config: Any) -> AsyncIterator[Changing]:
    async with changing(folder, SERVERS, watch=watch, **config) as it, asyncio.TaskGroup() as tasks:
        looking = tasks.create_task(it.reloader.watch())
        try:
            yield it
        finally:
            looking.cancel()


def reloads(it: Changing) -> int:
    return len(it.gate.said("config.reloaded"))


async def noticed(it: Changing, times: int = 1) -> None:
    await eventually_async(lambda: reloads(it) >= times, what=f"{times} reloads")


async def looked(it: Changing) -> None:
    """Long enough for several looks."""
    await asyncio.sleep(8 * it.reloader.look_every_s)


def told(it: Changing, text: str) -> str:
    return json.dumps({**it.config, "instructions": text})


def test_a_file_replaced_by_rename_is_read_once(tmp_path: Path) -> None:
    async def conversation() -> None:
        async with watching(tmp_path) as it:
            fresh = tmp_path / ".onegate.json.swp"
            fresh.write_text(told(it, "renamed"))
            fresh.replace(it.file)

            await noticed(it)
            assert it.gate.gateway.config.instructions == "renamed"
            await looked(it)
            assert reloads(it) == 1

    run(conversation())


def test_a_link_swapped_as_kubernetes_does_is_followed(tmp_path: Path) -> None:
    """A mounted ConfigMap: FILE is a link to ..data/FILE, and ..data is a link that is
    replaced by rename, whereupon the old folder is removed."""

    async def conversation() -> None:
        async with watching(tmp_path) as it:
            volume = tmp_path
            one, two = volume / "..one", volume / "..two"
            for folder, text in ((one, "one"), (two, "two")):
                folder.mkdir()
                (folder / it.file.name).write_text(told(it, text))
            (volume / "..data").symlink_to("..one")
            it.file.unlink()
            it.file.symlink_to(f"..data/{it.file.name}")
            await noticed(it)
            assert it.gate.gateway.config.instructions == "one"

            (volume / "..data_tmp").symlink_to("..two")
            os.replace(volume / "..data_tmp", volume / "..data")
            (one / it.file.name).unlink()
            one.rmdir()
            await noticed(it, 2)
            assert it.gate.gateway.config.instructions == "two"

    run(conversation())


def test_a_file_that_is_still_being_written_is_left_alone(tmp_path: Path) -> None:
    async def conversation() -> None:
        async with watching(tmp_path) as it:
            it.reloader.look_every_s = 0.2
            text = told(it, "written slowly " + "x" * 400)
            it.file.unlink()
            with it.file.open("w") as file:
                for at in range(0, len(text), 20):
                    file.write(text[at : at + 20])
                    file.flush()
                    await asyncio.sleep(0.01)  # that is how slowly it is written

            await noticed(it)
            assert not it.gate.said("config.refused")

    run(conversation())


def test_a_bad_file_is_refused_once_and_the_next_good_one_is_taken(tmp_path: Path) -> None:
    async def conversation() -> None:
        async with watching(tmp_path) as it:
            it.file.write_text("{")
            await eventually_async(lambda: it.gate.said("config.refused"))
            await looked(it)
            assert len(it.gate.said("config.refused")) == 1

            it.file.write_text(told(it, "good"))
            await noticed(it)

    run(conversation())


def test_a_file_that_goes_and_comes_back_as_it_was_is_no_change(tmp_path: Path) -> None:
    async def conversation() -> None:
        async with watching(tmp_path) as it:
            aside = it.file.rename(tmp_path / "aside")
            await looked(it)
            aside.rename(it.file)
            await looked(it)
            assert not reloads(it)
            assert not it.gate.said("config.refused")

    run(conversation())


def test_files_that_the_configuration_names_are_watched_too(tmp_path: Path) -> None:
    async def conversation() -> None:
        (tmp_path / "words").write_text("one")
        async with watching(tmp_path, instructions="${file:words}") as it:
            (tmp_path / "words").write_text("two")
            await noticed(it)
            assert it.gate.gateway.config.instructions == "two"

            (tmp_path / "it.env").write_text("MODE=one")
            await it.change_server("a", {**SERVERS["a"], "env_file": "it.env"})
            (tmp_path / "it.env").write_text("MODE=two")
            await noticed(it, 3)
            assert it.gate.said("config.reloaded")[-1]["restarted"] == ("a",)

    run(conversation())


def test_what_was_read_because_somebody_said_so_is_not_read_again(tmp_path: Path) -> None:
    async def conversation() -> None:
        async with watching(tmp_path) as it:
            assert (await it.change(default_decision="deny"))["ok"]
            await looked(it)
            assert reloads(it) == 1

    run(conversation())


def test_watching_is_begun_and_ended_by_the_file_itself(tmp_path: Path) -> None:
    async def conversation() -> None:
        async with watching(tmp_path, watch=False) as it:
            it.file.write_text(told(it, "unnoticed"))
            await looked(it)
            assert not reloads(it)

            await it.change(watch=True)
            it.file.write_text(told(it, "noticed"))
            await noticed(it, 2)
            await it.change(watch=False)
            it.file.write_text(told(it, "unnoticed"))
            await looked(it)
            assert reloads(it) == 3

    run(conversation())


def test_a_running_gateway_watches_if_it_is_told_to(tmp_path: Path) -> None:
    with running_gateway(tmp_path, SERVERS, watch=True) as gateway:
        gateway.wait_tools("a__echo")
        config = json.loads(gateway.file.read_text())

        gateway.file.write_text(json.dumps({**config, "default_decision": "deny"}))

        gateway.program.wait_text("config.reloaded", 20)
        assert gateway.tool_names() == []
