"""A real Chromium without a window, driven over its debugging protocol."""

import asyncio
import base64
import itertools
import json
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--hide-scrollbars", "--remote-debugging-port=0", "--remote-allow-origins=*"),
)
STARTS_WITHIN_S = 30.0
ANSWERS_WITHIN_S = 15.0


@dataclass(slots=True)
class Page:
    """One tab. `complaints` holds what a person would find in the console."""

    socket: aiohttp.ClientWebSocketResponse
    complaints: list[str] = field(default_factory=list)
    _ids: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    async def tell(self, method: str, **params: Any) -> Any:
        """One command and its result."""
        mine = next(self._ids)
        await self.socket.send_json({"id": mine, "method": method, "params": params})
        async with asyncio.timeout(ANSWERS_WITHIN_S):
            while True:
                message = json.loads((await self.socket.receive()).data)
                if message.get("id") == mine:
                    assert "error" not in message, message["error"]
                    return message["result"]
                self._note(message)

    def _note(self, event: Any) -> None:
        if event["method"] in ("Runtime.exceptionThrown", "Log.entryAdded"):
            self.complaints.append(json.dumps(event["params"]))

    async def go(self, url: str) -> None:
        await self.tell("Page.navigate", url=url)

    async def ask(self, expression: str) -> Any:
        """The value of a JavaScript expression, awaited if it is a promise."""
        found = await self.tell(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    async def until(self, expression: str, within_s: float = 10.0) -> Any:
        """Ask again and again until the answer is something; fails with the last one."""
        answer = None
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while not (answer := await self._ask_early(expression)):  # noqa: ASYNC110  a page has no events for us
                    await asyncio.sleep(0.05)
        assert answer, f"{expression} stayed {answer!r}"
        return answer

    async def _ask_early(self, expression: str) -> Any:
        """None while the page is not far enough to be asked."""
        try:
            return await self.ask(expression)
        except AssertionError:
            return None

    async def look_like(self, width: int, *, dark: bool) -> None:
        """A window this wide, on a system that is dark or light."""
        await self.tell(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=900, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.tell("Emulation.setEmulatedMedia", features=[scheme])

    async def picture(self, file: Path) -> None:
        """What it looks like, as PNG: for people."""
        taken = await self.tell("Page.captureScreenshot", captureBeyondViewport=True)
        await asyncio.to_thread(file.write_bytes, base64.b64decode(taken["data"]))


@asynccontextmanager
async def chromium(profile: Path) -> AsyncIterator[Page]:
    """An empty tab in a browser of its own, ended with it."""
    program = shutil.which("chromium")
    assert program, "Chromium is missing: tests/locked/system.sh installs it"
    process = await asyncio.to_thread(
        subprocess.Popen,
        [program, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        async with aiohttp.ClientSession() as http:
            url = await _tab(http, profile / "DevToolsActivePort")
            async with http.ws_connect(url, max_msg_size=0) as socket:
                page = Page(socket)
                for domain in ("Page", "Runtime", "Log"):
                    await page.tell(f"{domain}.enable")
                yield page
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


async def _tab(http: aiohttp.ClientSession, port_file: Path) -> str:
    async with asyncio.timeout(STARTS_WITHIN_S):
        while True:
            with suppress(OSError, ValueError, IndexError, aiohttp.ClientError):
                port = int((await asyncio.to_thread(port_file.read_text)).split()[0])
                async with http.get(f"http://127.0.0.1:{port}/json") as answer:
                    tabs = [tab for tab in await answer.json() if tab["type"] == "page"]
                return str(tabs[0]["webSocketDebuggerUrl"])
            await asyncio.sleep(0.05)
