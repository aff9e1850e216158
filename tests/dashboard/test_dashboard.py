"""What an operator sees at `/` of the admin address, in a real Chromium."""

import asyncio
import hashlib
import json
import signal
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.kit.browser import Page, chromium
from tests.kit.fakes import fake
from tests.kit.gateway import Gateway, running_gateway
from tests.kit.ports import free_port
from tests.kit.waiting import run

HOSTILE = "<img src=x onerror=document.title='owned'>"
HEALTH = "document.getElementById('health').textContent"
DENY = [{"match": "fake__whoami", "decision": "deny"}]


def call(gateway: Gateway, tool: str, **arguments: object) -> None:
    """A call as the operator, whatever comes of it."""
    body = json.dumps({"tool": tool, "arguments": arguments}).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{gateway.admin}/api/call", body, headers)
    with urllib.request.urlopen(request, timeout=20) as answer:
        answer.read()


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A server that is well, one that cannot start, and calls that ended in every way."""
    servers = {"fake": fake(required=True), "broken": {"command": "no-such-program"}}
    folder = tmp_path_factory.mktemp("dashboard")
    with running_gateway(folder, servers, tools=DENY) as gateway:
        for _ in range(3):
            call(gateway, "fake__echo", text="hello")
        for tool in ("fake__fail", "fake__whoami", HOSTILE):
            call(gateway, tool)
        yield gateway


@asynccontextmanager
async def dashboard(
    gateway: Gateway, profile: Path, view: str = "", *, width: int = 1280, dark: bool = False
) -> AsyncIterator[Page]:
    async with chromium(profile) as page:
        await page.look_like(width, dark=dark)
        await page.go(f"{gateway.admin}/{view}")
        await page.until("!!document.querySelector('#calls tbody tr')")
        yield page


def texts(selector: str) -> str:
    return f"[...document.querySelectorAll({selector!r})].map(one => one.textContent.trim())"


def test_servers_tools_and_calls_are_there_and_the_console_is_empty(
    gateway: Gateway, tmp_path: Path
) -> None:
    async def look() -> None:
        async with dashboard(gateway, tmp_path) as page:
            # Trouble first: of 200 servers it is what one looks for.
            assert await page.ask(texts("#servers td:nth-child(2)")) == ["failed", "ready"]
            assert "no-such-program" in await page.ask(
                "document.querySelector('#servers .wide div').textContent"
            )
            tools = await page.ask(texts("#tools tbody button"))
            assert tools[0] == "fake__echo"
            assert await page.ask("document.querySelector('#tools tbody td.n').textContent") == "3"
            outcomes = await page.ask(texts("#calls td:nth-child(3)"))
            assert outcomes == ["invalid", "denied", "tool_error", "ok", "ok", "ok"]
            assert (
                await page.ask("document.getElementById('health').textContent")
                == "1 of 2 servers ready"
            )
            assert page.complaints == []

    run(look(), 60)


def test_calls_appear_while_one_looks(gateway: Gateway, tmp_path: Path) -> None:
    async def look() -> None:
        async with chromium(tmp_path) as page:
            await page.go(f"{gateway.admin}/#tool=fake__log")
            said = "document.getElementById('no-calls').textContent"
            await page.until(f"{said} === 'No such calls among the last 1000.'")
            assert "_unknown" not in await page.ask(texts("[name=tool] option"))
            await asyncio.to_thread(call, gateway, "fake__log")
            await page.until(f"JSON.stringify({texts('#calls td:nth-child(2)')}).includes('log')")
            assert await page.ask("document.getElementById('no-calls').hidden")

    run(look(), 60)


def test_a_filter_stands_in_the_address_and_an_address_filters(
    gateway: Gateway, tmp_path: Path
) -> None:
    async def look() -> None:
        async with dashboard(gateway, tmp_path, "#outcome=denied") as page:
            assert await page.ask(texts("#calls td:nth-child(3)")) == ["denied"]
            await page.ask(
                "{const s = document.querySelector('[name=outcome]'); s.value = 'tool_error';"
                " s.dispatchEvent(new Event('change', {bubbles: true}))}"
            )
            await page.until(
                f"JSON.stringify({texts('#calls td:nth-child(3)')}) === '[\"tool_error\"]'"
            )
            assert await page.ask("location.hash") == "#outcome=tool_error"

    run(look(), 60)


def test_a_tool_is_plotted_when_it_is_chosen(gateway: Gateway, tmp_path: Path) -> None:
    async def look() -> None:
        async with dashboard(gateway, tmp_path) as page:
            await page.ask("document.querySelector('#tools tbody button').click()")
            await page.until("document.querySelectorAll('#plot svg').length === 2")
            legend = await page.ask(texts("#plot .legend b"))
            assert legend == ["calls", "failed", "p50", "p95", "p99"]
            drawn = "document.querySelector('#plot svg path.a').getAttribute('d').length > 100"
            assert await page.ask(drawn)

    run(look(), 60)


def test_what_one_is_at_stays_while_the_page_is_kept_fresh(
    gateway: Gateway, tmp_path: Path
) -> None:
    """A keyboard's place, and text that is being copied, outlive any number of refreshes."""
    button = "[...document.querySelectorAll('#tools button')].find(b => b.textContent === {!r})"
    selected = "getSelection().toString()"

    async def look() -> None:
        async with dashboard(gateway, tmp_path) as page:
            await page.ask(f"{button.format('fake__fail')}.focus()")
            await page.ask(
                "getSelection().selectAllChildren(document.querySelector('#servers .wide div'))"
            )
            text = await page.ask(selected)
            assert "no-such-program" in text
            for _ in range(2):  # the first moves rows about, the second only adds to them
                calls = len(await page.ask(texts("#calls tbody tr")))
                await asyncio.to_thread(call, gateway, "fake__fail")
                await page.until(f"document.querySelectorAll('#calls tbody tr').length > {calls}")
            assert await page.ask("document.activeElement.textContent") == "fake__fail"
            assert await page.ask(selected) == text
            names = await page.ask(texts("#tools tbody button"))
            assert names[:2] == ["fake__echo", "fake__fail"]
            assert len(names) == len(set(names))

    run(look(), 60)


def test_what_a_caller_typed_is_only_ever_text(gateway: Gateway, tmp_path: Path) -> None:
    async def look() -> None:
        async with dashboard(gateway, tmp_path, "#outcome=invalid") as page:
            assert await page.ask(texts("#calls td:nth-child(2)")) == [HOSTILE]
            assert await page.ask("document.images.length") == 0
            assert await page.ask("document.title") == "onegate"

    run(look(), 60)


def test_it_fits_a_phone_and_goes_dark_with_the_system(gateway: Gateway, tmp_path: Path) -> None:
    async def look() -> None:
        async with dashboard(gateway, tmp_path, width=390, dark=True) as page:
            assert await page.ask("document.documentElement.scrollWidth") <= 390
            ground = "getComputedStyle(document.body).backgroundColor"
            assert await page.ask(ground) == "rgb(21, 24, 28)"
            await page.look_like(390, dark=False)
            assert await page.ask(ground) == "rgb(251, 251, 250)"

    run(look(), 60)


def test_beyond_loopback_it_asks_for_a_token_and_keeps_it_in_the_tab(tmp_path: Path) -> None:
    token, port = "a-token-of-no-importance", free_port()
    hashed = {"name": "ann", "sha256": hashlib.sha256(token.encode()).hexdigest()}
    config: dict[str, Any] = {"admin": f"0.0.0.0:{port}", "auth": {"tokens": [hashed]}}

    async def look() -> None:
        async with chromium(tmp_path / "profile") as page:
            await page.go(f"http://127.0.0.1:{port}/")
            await page.until("!document.getElementById('login').hidden")
            assert await page.ask("document.getElementById('main').hidden")
            assert await page.ask("document.getElementById('wrong').textContent") == ""
            await page.ask(
                "document.getElementById('token').value = 'wrong';"
                "document.querySelector('#login button').click()"
            )
            await page.until("document.getElementById('wrong').textContent")
            assert await page.ask("sessionStorage.length") == 0
            await page.ask(
                f"document.getElementById('token').value = {token!r};"
                "document.querySelector('#login button').click()"
            )
            await page.until("!document.getElementById('main').hidden")
            assert await page.ask(texts("#servers td:nth-child(1)")) == ["fake"]
            assert await page.ask("sessionStorage.length") == 1
            assert await page.ask("localStorage.length + document.cookie.length") == 0

    folder = tmp_path / "gateway"
    folder.mkdir()
    with running_gateway(folder, {"fake": fake(required=True)}, **config):
        run(look(), 60)


def test_a_gateway_that_answers_no_more_is_not_called_live(tmp_path: Path) -> None:
    async def look(gateway: Gateway) -> None:
        async with dashboard(gateway, tmp_path / "profile") as page:
            await page.until("document.getElementById('live').textContent === 'live'")
            gateway.program.send(signal.SIGSTOP)
            try:
                await page.until(f"{HEALTH} === 'The gateway does not answer'", within_s=20)
            finally:
                gateway.program.send(signal.SIGCONT)
            await page.until("document.getElementById('live').textContent === 'live'", within_s=20)
            assert await page.ask(HEALTH) == "1 of 1 servers ready"

    with running_gateway(tmp_path, {"fake": fake(required=True)}) as gateway:
        call(gateway, "fake__echo", text="hello")
        run(look(gateway), 60)
