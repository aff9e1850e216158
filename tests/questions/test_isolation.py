"""Who shares a process, seen by its pid (protocol 3.5): leases, sessions, spares, bounds."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kit.http import Legacy, Modern, Stream
from tests.kit.waiting import eventually_async, run
from tests.questions.inside import ANN, BOB, Inside, bearer, inside
from tests.questions.talking import (
    Client,
    Message,
    Talk,
    by_words,
    client_of,
    converse,
    parked,
    pid_of,
    retry_of,
)
from tests.questions.test_parked import ASK, WORDS, two_tokens


async def _pid(client: Client) -> int:
    return await pid_of(client, "it")


def test_clients_that_can_be_asked_nothing_share_and_others_are_kept_apart(
    tmp_path: Path,
) -> None:
    async def conversation() -> None:
        async with (
            inside(tmp_path) as it,
            client_of("modern", it.url, {}) as nobody,
            client_of("legacy", it.url, {}) as nobody_else,
            client_of("modern", it.url) as modern,
            client_of("legacy", it.url) as one,
            client_of("legacy", it.url) as other,
        ):
            shared = await _pid(nobody)
            assert await _pid(nobody_else) == shared
            apart = [await _pid(client) for client in (modern, one, other)]
            assert len({shared, *apart}) == 4
            assert [await _pid(client) for client in (modern, one, other)] == apart

            listed = (await it.gate.report())["pids"]
            assert listed[0] == shared
            assert set(apart) < set(listed)

    run(conversation())


def test_a_lease_is_one_calls_and_then_the_same_principals(tmp_path: Path) -> None:
    async def conversation() -> None:
        async with (
            inside(tmp_path, config=two_tokens()) as it,
            client_of("modern", it.url, headers=bearer(ANN)) as ann,
            client_of("modern", it.url, headers=bearer(BOB)) as bob,
        ):
            assert isinstance(ann, Modern)
            first = await _pid(ann)
            assert await _pid(ann) == first
            assert await _pid(bob) != first
            asked = await parked(ann, "it__q_ask", WORDS)
            waiting = it.heard.lines("tools/call")[-1]["pid"]
            assert waiting == first
            assert await _pid(ann) != first, "it is hers still, but busy"
            told = await ann.request("tools/call", {**ASK, **retry_of(asked)})
            assert told.text == f"w {first}"

    run(conversation())


def test_a_sessions_process_ends_with_it(tmp_path: Path) -> None:
    async def conversation() -> None:
        async with inside(tmp_path) as it:
            async with client_of("legacy", it.url) as client:
                deleted = await _pid(client)
            await it.gone(deleted)
            async with client_of("legacy", it.url) as client:
                expired = await _pid(client)
                sessions = it.gate.gateway.sessions
                now = sessions.clock() + sessions.idle_s + 1
                sessions.clock = lambda: now
                sessions.expire()
                await it.gone(expired)
                assert isinstance(client, Legacy)
                client.session = None

    run(conversation())


def test_nobody_waits_for_a_start_after_the_first_client(tmp_path: Path) -> None:
    async def conversation() -> None:
        async with inside(tmp_path) as it, client_of("legacy", it.url) as first:
            own = await _pid(first)
            spare = await it.spare_ready()
            async with client_of("legacy", it.url) as second:
                assert await _pid(second) == spare != own

    run(conversation())


def test_a_process_starts_as_soon_as_a_client_says_hello(tmp_path: Path) -> None:
    async def conversation() -> None:
        async with inside(tmp_path) as it, client_of("legacy", it.url) as client:
            spare = await it.spare_ready()
            assert await _pid(client) == spare

    run(conversation())


def test_two_first_calls_at_once_are_served_by_one_process(tmp_path: Path) -> None:
    async def conversation() -> list[int]:
        async with inside(tmp_path) as it, client_of("legacy", it.url) as client:
            return list(await asyncio.gather(*(_pid(client) for _ in range(5))))

    assert len(set(run(conversation()))) == 1


def test_what_idles_ends_and_comes_back_when_it_is_needed(tmp_path: Path) -> None:
    async def conversation() -> None:
        async with (
            inside(tmp_path) as it,
            client_of("legacy", it.url) as legacy,
            client_of("modern", it.url) as modern,
        ):
            session, lease = await _pid(legacy), await _pid(modern)
            spare = await it.spare_ready()
            it.pass_time(it.apart.pool.idle_s + 1)
            await it.gone(lease)
            await it.gone(spare)
            assert await _pid(legacy) == session, "it may hold what the session did"
            assert await _pid(modern) != lease

    run(conversation())


def test_at_the_bound_the_client_is_told_what_to_do(tmp_path: Path) -> None:
    async def conversation() -> tuple[Message, int]:
        async with (
            inside(tmp_path, processes=1, queue=0) as it,
            client_of("modern", it.url) as client,
        ):
            assert isinstance(client, Modern)
            asked = await parked(client, "it__q_ask", WORDS)
            refused = (await client.call("it__q_ask", WORDS)).result
            told = await client.request("tools/call", {**ASK, **retry_of(asked)})
            assert told.text.startswith("w "), "the one that waited is none the worse"
            await _pid(client)
            return refused, len(it.apart.pool)

    refused, left = run(conversation())

    assert refused["isError"] is True
    text = refused["content"][0]["text"]
    assert "All 1 private processes of it are in use" in text
    assert "isolation: shared" in text
    error = refused["_meta"]["onegate/error"]
    assert (error["kind"], error["retryable"], error["server"]) == ("unavailable", True, "it")
    assert left == 1


@pytest.mark.parametrize(
    ("isolation", "same_session", "same_principal", "all_alike"),
    [
        ("shared", True, True, True),
        ("session", True, False, False),
        ("principal", True, True, False),
    ],
)
def test_isolation_can_be_forced(
    tmp_path: Path, isolation: str, same_session: bool, same_principal: bool, all_alike: bool
) -> None:
    """Also for clients that nobody could ask anything: the server holds state."""

    async def conversation() -> tuple[bool, bool, bool]:
        async with (
            inside(tmp_path, isolation=isolation, config=two_tokens()) as it,
            client_of("legacy", it.url, {}, bearer(ANN)) as one,
            client_of("legacy", it.url, {}, bearer(ANN)) as other,
            client_of("legacy", it.url, {}, bearer(BOB)) as bob,
        ):
            pids = [await _pid(client) for client in (one, one, other, bob)]
            return pids[0] == pids[1], pids[0] == pids[2], pids[0] == pids[3]

    assert run(conversation()) == (same_session, same_principal, all_alike)


def test_a_server_everybody_shares_by_decree_asks_nobody(tmp_path: Path) -> None:
    async def conversation() -> Talk:
        async with (
            inside(tmp_path, isolation="shared") as it,
            client_of("legacy", it.url) as client,
        ):
            return await converse(client, "it__q_ask", WORDS)

    talk = run(conversation())

    assert not talk.questions
    assert talk.result["isError"] is True


def test_modern_servers_are_shared_whoever_calls(tmp_path: Path) -> None:
    async def conversation() -> set[int]:
        async with (
            inside(tmp_path, "modern") as it,
            client_of("legacy", it.url) as one,
            client_of("modern", it.url) as other,
        ):
            assert len((await it.gate.report())["pids"]) == 1
            return {await _pid(one), await _pid(other), await _pid(one)}

    assert len(run(conversation())) == 1


def test_tools_for_clients_that_can_be_asked_are_offered_and_stay(tmp_path: Path) -> None:
    """Servers list more for them; the list of the shared process must not take that back."""

    async def offered(client: Client) -> bool:
        listed = (await client.request("tools/list")).result["tools"]
        return "it__q_for_askable" in {each["name"] for each in listed}

    async def conversation() -> None:
        async with inside(tmp_path) as it, client_of("modern", it.url, {}) as nobody:
            assert not await offered(nobody)
            async with client_of("legacy", it.url) as client:
                await eventually_async(lambda: offered(client), what="it to be offered")
                assert (await client.call("it__q_for_askable")).text
            await nobody.call("it__test_toggle_tool")

            async def toggled() -> bool:
                listed = (await nobody.request("tools/list")).result["tools"]
                return "it__test_visitor" in {each["name"] for each in listed}

            await eventually_async(toggled, what="the shared process to list anew")
            assert await offered(nobody)

    run(conversation())


def test_what_a_private_process_changes_is_heard(tmp_path: Path) -> None:
    async def conversation() -> None:
        async with inside(tmp_path) as it, client_of("legacy", it.url) as client:
            await client.call("it__test_toggle_tool")

            async def toggled() -> bool:
                listed = (await client.request("tools/list")).result["tools"]
                return "it__test_visitor" in {each["name"] for each in listed}

            await eventually_async(toggled, what="its list to be read again")
            assert (await client.call("it__test_visitor")).text

    run(conversation())


def test_a_clients_log_level_reaches_the_process_it_has(tmp_path: Path) -> None:
    async def conversation() -> None:
        async with inside(tmp_path) as it, client_of("legacy", it.url) as client:
            pid = await _pid(client)
            await client.request("logging/setLevel", {"level": "debug"})
            await it.heard.wait(
                lambda each: each.get("method") == "logging/setLevel" and each["pid"] == pid
            )

    run(conversation())


def test_new_roots_are_told_to_the_clients_own_process_alone(tmp_path: Path) -> None:
    """Protocol C1: `roots/list_changed` is forwarded."""

    async def conversation() -> None:
        async with (
            inside(tmp_path) as it,
            client_of("legacy", it.url) as one,
            client_of("legacy", it.url) as other,
        ):
            assert isinstance(one, Legacy)
            pid, _ = await _pid(one), await _pid(other)
            method = "notifications/roots/list_changed"
            await one.notify(method)
            told = await it.heard.wait(lambda each: each.get("method") == method)
            assert told["pid"] == pid
            assert len(it.heard.lines(method)) == 1

    run(conversation())


def test_what_a_server_asks_of_a_call_that_was_given_up_reaches_nobody(tmp_path: Path) -> None:
    """It cancels nothing when it is told to, and asks again, about the same."""

    async def conversation(it: Inside) -> None:
        async with client_of("modern", it.url) as client:
            assert isinstance(client, Modern)
            told: Message = {"name": "it__q_stubborn", "arguments": {"words": "ann's secret"}}
            asked = await parked(client, "it__q_stubborn", told["arguments"])
            pid = it.heard.lines("tools/call")[0]["pid"]
            retry = client.message("tools/call", {**told, **retry_of(asked)})
            async with client.opened(retry, client.routing(retry)):
                await it.heard.wait(lambda each: "result" in each)
            await it.heard.wait(lambda each: each.get("method") == "notifications/cancelled")
            await it.gone(pid)
            for _ in range(3):
                talk = await converse(client, "it__q_ask", WORDS)
                assert [each["params"]["message"] for each in talk.questions] == ["w"]

    async def whole() -> None:
        async with inside(tmp_path) as it:
            await conversation(it)

    run(whole())


def test_what_a_server_asks_after_its_answer_reaches_nobody_else(tmp_path: Path) -> None:
    async def conversation() -> None:
        async with inside(tmp_path) as it, client_of("modern", it.url) as client:
            await client.call("it__q_late")
            refused = await it.heard.wait(lambda each: "error" in each)
            talk = await converse(client, "it__q_ask", WORDS)
            assert [each["params"]["message"] for each in talk.questions] == ["w"]
            assert refused["error"]["code"] == -32601

    run(conversation())


def test_what_is_asked_between_calls_of_a_session_is_put_with_its_next(tmp_path: Path) -> None:
    async def conversation() -> list[str]:
        async with inside(tmp_path) as it, client_of("legacy", it.url) as client:
            await client.call("it__q_late")
            legs = it.apart.pool.connections[0].outbound._legs  # type: ignore[attr-defined]
            await eventually_async(lambda: legs._unowned, what="it to ask")
            talk = await converse(client, "it__test_tool_with_progress", answering=_late)
            return [each["params"]["message"] for each in talk.questions]

    def _late(question: Message) -> Message:
        return by_words(question["params"])

    assert run(conversation()) == ["late"]


def test_what_is_updated_in_a_clients_own_process_is_told_to_that_client(tmp_path: Path) -> None:
    """Its subscription goes where its calls go; another client's process has not seen it."""
    updated, uri = "notifications/resources/updated", "test://watched-resource"

    async def conversation() -> tuple[list[Message], int]:
        async with (
            inside(tmp_path) as it,
            client_of("legacy", it.url) as one,
            client_of("legacy", it.url) as other,
        ):
            assert isinstance(one, Legacy)
            assert isinstance(other, Legacy)
            await _pid(one)  # has its process before it subscribes, the other one after
            for client in (one, other):
                await client.request("resources/subscribe", {"uri": uri})
            await _pid(other)
            for pid in (await _pid(one), await _pid(other)):
                await it.heard.wait(_subscribed(pid))
            async with one.listening() as mine, other.listening() as theirs:
                await one.call("it__test_touch_watched_resource")
                told = [await _next(mine)]
                await other.call("it__test_touch_watched_resource")
                told.append(await _next(theirs))
            await one.request("resources/unsubscribe", {"uri": uri})
            await other.request("resources/unsubscribe", {"uri": uri})
            await it.heard.wait(lambda each: each.get("method") == "resources/unsubscribe")
            unheard = [key for each in it.gate.gateway.sessions for key in each._unheard]
            return told, unheard.count(uri)

    async def _next(stream: Stream) -> Message:
        while (message := await stream.message())["method"] != updated:
            assert message["method"].endswith("list_changed"), message
        return message

    def _subscribed(pid: int) -> Callable[[Message], bool]:
        return lambda each: each["pid"] == pid and each.get("method") == "resources/subscribe"

    told, more = run(conversation())

    assert [(each["method"], each["params"]["uri"]) for each in told] == [(updated, uri)] * 2
    assert not more, "once each"
