"""Many servers, one list: names, clashes, order, and what is left out of it."""

import random
import time
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.catalog.entries import Kind, Listing, Route
from gateway.catalog.merging import merge
from gateway.protocol.jsonrpc import Raw, as_bytes
from tests.catalog.listings import (
    SCHEMA,
    as_sent,
    events,
    merged,
    names,
    resources,
    templates,
    tool,
    tools,
)

# --- names and order -------------------------------------------------------------------------


def test_names_are_prefixed_and_routed_by_table() -> None:
    """Cases B51: `a` with `b__c` and `a-b` with `c` never meet, whatever a separator suggests."""
    catalog = merged(tools("a", "b__c", "c"), tools("a-b", "c"))
    assert names(catalog) == ["a__b__c", "a__c", "a-b__c"]
    found = catalog.resolve(Kind.TOOL, "a__b__c")
    assert found is not None
    assert found.route == Route("a", Kind.TOOL, "b__c")
    assert catalog.resolve(Kind.TOOL, "b__c") is None
    assert catalog.resolve(Kind.PROMPT, "a__c") is None


def test_the_order_is_that_of_the_configuration_then_of_each_server() -> None:
    listings = [tools("z", "b", "a"), tools("m", "y", "x"), tools("a", "q")]
    assert names(merged(*listings)) == ["z__b", "z__a", "m__y", "m__x", "a__q"]


def test_the_order_in_which_servers_came_up_does_not_matter() -> None:
    listings = [tools(server, "one", "two") for server in "dbca"]
    in_order = merged(*listings)
    shuffled = listings[:]
    for seed in range(5):
        random.Random(seed).shuffle(shuffled)
        prefixes = {listing.server: listing.server for listing in listings}
        assert merge(shuffled, prefixes, 50) == in_order


def test_names_do_not_depend_on_which_other_servers_there_are() -> None:
    """Cases B52."""
    alone = names(merged(tools("time", "now", "x" * 90)))
    together = names(merged(tools("files", "now"), tools("time", "now", "x" * 90)))
    assert together == ["files__now", *alone]


def test_a_prefix_can_be_another_word_or_nothing() -> None:
    catalog = merged(tools("time", "now"), tools("files", "read"), time="", files="fs")
    assert names(catalog) == ["now", "fs__read"]


def test_a_rewritten_name_is_reported_and_a_prefixed_one_is_not() -> None:
    catalog = merged(tools("time", "now", "get.time"))
    assert events(catalog) == [("entry.renamed", "get.time", "time__get_time")]


def test_a_name_that_meets_another_after_cleaning_gets_a_hash() -> None:
    catalog = merged(tools("time", "a.b", "a b", "a_b"))
    first, second, third = names(catalog)
    assert first == "time__a_b"
    assert second.startswith("time__a_b_")
    assert third.startswith("time__a_b_")
    assert len({first, second, third}) == 3
    owns = [entry.route.name for entry in catalog.of(Kind.TOOL)]
    assert owns == ["a.b", "a b", "a_b"]
    assert [event for event, _, _ in events(catalog)].count("entry.clashed") == 2


def test_without_a_prefix_the_first_configured_keeps_the_name_and_the_other_gets_its_key() -> None:
    catalog = merged(tools("one", "echo"), tools("two", "echo"), one="", two="")
    assert names(catalog) == ["echo", "two__echo"]
    assert events(catalog) == [("entry.clashed", "echo", "two__echo")]
    assert catalog.notes[0].why == "echo belongs to one"


def test_a_server_that_comes_up_first_does_not_take_the_name_of_one_configured_before() -> None:
    prefixes = {"one": "", "two": ""}
    early = merge([tools("two", "echo")], prefixes, 50)
    assert names(early) == ["echo"]
    both = merge([tools("two", "echo"), tools("one", "echo")], prefixes, 50)
    found = both.resolve(Kind.TOOL, "echo")
    assert found is not None
    assert found.route.server == "one"


def test_a_name_made_to_look_like_another_servers_gets_a_hash() -> None:
    catalog = merged(tools("evil", "bank__pay"), tools("bank", "pay"), evil="")
    evil, bank = names(catalog)
    assert evil == "bank__pay"  # configured first; reported below
    assert bank.startswith("bank__pay_")
    assert [note.server for note in catalog.notes] == ["bank"]
    reverse = merged(tools("bank", "pay"), tools("evil", "bank__pay"), evil="")
    assert names(reverse) == ["bank__pay", "evil__bank__pay"]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "c"]),
            st.lists(st.text("ab._ é", min_size=1, max_size=70), max_size=6),
        ),
        max_size=4,
        unique_by=lambda pair: pair[0],
    ),
    st.dictionaries(st.sampled_from(["a", "b", "c"]), st.sampled_from(["", "a", "p"])),
    st.integers(16, 64),
)
def test_every_entry_has_one_name_of_its_own_and_leads_back_to_its_server(
    listed: list[tuple[str, list[str]]], prefixes: dict[str, str], longest: int
) -> None:
    listings = [tools(server, *own) for server, own in listed]
    catalog = merged(*listings, longest=longest, **prefixes)
    offered = names(catalog)
    assert len(set(offered)) == len(offered)
    expected = {(server, name) for server, own in listed for name in own}
    assert {(e.route.server, e.route.name) for e in catalog.of(Kind.TOOL)} == expected
    for entry in catalog.of(Kind.TOOL):
        assert catalog.resolve(Kind.TOOL, entry.name) is entry
    assert merged(*listings, longest=longest, **prefixes) == catalog


# --- definitions -----------------------------------------------------------------------------


def test_everything_but_the_name_stays_the_bytes_it_came_as() -> None:
    """Cases B48: schemas, unknown members, the order of members and even odd numbers."""
    sent = (
        b'{"title":"T","inputSchema":{"$schema":"x","type":"object","$defs":{"n":{"$ref":"#/$defs/n"}},'
        b'"properties":{"a":true,"b":{"anyOf":[{"type":"null"},{"const":1.0e2}]}}},"name":"get",'
        b'"icons":[{"src":"data:x"}],"_meta":{"a/b":1},"annotations":{"readOnlyHint":true},'
        b'"outputSchema":{"type":"object"},"execution":{"taskSupport":"optional"},"x-new":[1,{}]}'
    )
    definition = msgspec.json.decode(sent, type=dict[str, Raw])
    catalog = merged(Listing("time", tools=(definition,)))
    offered = as_bytes(catalog.of(Kind.TOOL)[0].definition)
    assert offered == sent.replace(b'"name":"get"', b'"name":"time__get"')
    bare = merged(Listing("time", tools=(definition,)), time="")
    assert bare.of(Kind.TOOL)[0].definition is definition


@pytest.mark.parametrize(
    ("kind", "member", "broken", "why"),
    [
        (Kind.TOOL, "tools", {"inputSchema": SCHEMA}, "name is no text"),
        (Kind.TOOL, "tools", {"name": 7, "inputSchema": SCHEMA}, "name is no text"),
        (Kind.TOOL, "tools", {"name": "", "inputSchema": SCHEMA}, "name is empty"),
        (Kind.TOOL, "tools", {"name": "x"}, "inputSchema is not an object"),
        (Kind.TOOL, "tools", {"name": "x", "inputSchema": "y"}, "inputSchema is not an object"),
        (Kind.TOOL, "tools", {"name": "x", "inputSchema": {"type": "string"}},
         "inputSchema does not describe an object"),
        (Kind.TOOL, "tools", {"name": "x", "inputSchema": SCHEMA, "description": 3},
         "description is not a text"),
        (Kind.TOOL, "tools", {"name": "x", "inputSchema": SCHEMA, "annotations": []},
         "annotations is not an object"),
        (Kind.PROMPT, "prompts", {"description": "x"}, "name is no text"),
        (Kind.PROMPT, "prompts", {"name": "x", "arguments": {}}, "arguments is not a list"),
        (Kind.RESOURCE, "resources", {"name": "x"}, "uri is no text"),
        (Kind.RESOURCE, "resources", {"uri": "a:b"}, "name is no text"),
        (Kind.TEMPLATE, "templates", {"name": "x"}, "uriTemplate is no text"),
        (Kind.TEMPLATE, "templates", {"name": "x", "uriTemplate": "a:{b"},
         "a brace without its partner"),
    ],
)  # fmt: skip
def test_one_malformed_entry_is_left_out_and_the_others_live(
    kind: Kind, member: str, broken: object, why: str
) -> None:
    good = as_sent(
        {"name": "good", "uri": "a:good", "uriTemplate": "a:{good}", "inputSchema": SCHEMA}
    )
    listed = msgspec.structs.replace(Listing("s"), **{member: (as_sent(broken), good)})
    catalog = merged(listed)
    assert len(catalog.of(kind)) == 1
    (note,) = catalog.notes
    assert (note.event, note.server, note.kind, note.why) == ("entry.left_out", "s", kind, why)


def test_what_strict_clients_choke_on_is_mended_where_that_changes_nothing() -> None:
    listing = Listing("s", tools=(as_sent({"name": "x", "inputSchema": {}, "description": None}),))
    catalog = merged(listing)
    definition = msgspec.json.decode(as_bytes(catalog.of(Kind.TOOL)[0].definition))
    assert definition == {"name": "s__x", "inputSchema": {"type": "object"}}
    assert catalog.notes[0].why == "description was null, inputSchema had no type"


def test_what_a_server_lists_twice_is_offered_once() -> None:
    catalog = merged(Listing("s", tools=(tool("x", title="1"), tool("x", title="2"))))
    assert [msgspec.json.decode(e.definition["title"]) for e in catalog.of(Kind.TOOL)] == ["1"]
    assert catalog.notes[0].why == "listed twice by this server"


def test_a_note_holds_only_the_beginning_of_an_endless_name() -> None:
    catalog = merged(tools("s", "x" * 1_000_000))
    assert len(catalog.notes[0].name) < 300
    assert len(names(catalog)[0]) == 50


def test_a_tool_that_http_clients_must_reject_is_left_out() -> None:
    """2026-07-28, server/tools, x-mcp-header."""
    bad = {"type": "object", "properties": {"n": {"type": "number", "x-mcp-header": "N"}}}
    good = {"type": "object", "properties": {"r": {"type": "string", "x-mcp-header": "Region"}}}
    listing = Listing("s", tools=(tool("bad", inputSchema=bad), tool("good", inputSchema=good)))
    catalog = merged(listing)
    assert names(catalog) == ["s__good"]
    (param,) = catalog.header_params["s__good"]
    assert (param.path, param.header) == (("r",), "Mcp-Param-Region")
    assert catalog.notes[0].why == "n is no string, integer or boolean"
    assert catalog.keep(lambda entry: False).header_params == {}


# --- resources -------------------------------------------------------------------------------


def test_uris_stay_as_they_are() -> None:
    catalog = merged(resources("a", "test://static-text", "memo:x"))
    assert names(catalog, Kind.RESOURCE) == ["test://static-text", "memo:x"]
    assert catalog.offered_uri("a", "memo:x") == "memo:x"


def test_the_loser_of_a_shared_uri_is_set_apart_and_leads_to_the_uri_it_knows() -> None:
    catalog = merged(resources("a", "memo:x"), resources("b", "memo:x", "memo:y"))
    assert names(catalog, Kind.RESOURCE) == ["memo:x", "b+memo:x", "memo:y"]
    mine, other = (catalog.resolve(Kind.RESOURCE, uri) for uri in ("memo:x", "b+memo:x"))
    assert mine is not None
    assert other is not None
    assert mine.route == Route("a", Kind.RESOURCE, "memo:x")
    assert other.route == Route("b", Kind.RESOURCE, "memo:x")
    assert msgspec.json.decode(other.definition["uri"]) == "b+memo:x"
    assert catalog.offered_uri("b", "memo:x") == "b+memo:x"
    assert events(catalog) == [("entry.clashed", "memo:x", "b+memo:x")]


def test_a_uri_is_found_exactly_then_by_template_in_order() -> None:
    catalog = merged(
        templates("a", "test://{+any}"),
        replace_resources(templates("b", "test://t/{id}"), "test://t/listed"),
    )
    listed = catalog.resolve(Kind.RESOURCE, "test://t/listed")
    fitted = catalog.resolve(Kind.RESOURCE, "test://t/other")
    assert listed is not None
    assert fitted is not None
    assert (listed.route.server, listed.template) == ("b", None)
    assert fitted.route == Route("a", Kind.RESOURCE, "test://t/other")
    assert (fitted.name, fitted.template) == ("test://t/other", "test://{+any}")
    assert catalog.resolve(Kind.RESOURCE, "other://x") is None
    assert catalog.resolve(Kind.TOOL, "test://t/other") is None


def replace_resources(listing: Listing, *uris: str) -> Listing:
    return msgspec.structs.replace(
        listing, resources=tuple(as_sent({"uri": uri, "name": "x"}) for uri in uris)
    )


def test_a_template_two_servers_have_can_be_used_of_both() -> None:
    catalog = merged(templates("a", "db://{t}"), templates("b", "db://{t}"))
    assert names(catalog, Kind.TEMPLATE) == ["db://{t}", "b+db://{t}"]
    first, second = (catalog.resolve(Kind.RESOURCE, uri) for uri in ("db://x", "b+db://x"))
    assert first is not None
    assert second is not None
    assert first.route == Route("a", Kind.RESOURCE, "db://x")
    assert second.route == Route("b", Kind.RESOURCE, "db://x")
    assert second.name == "b+db://x"
    told = [catalog.offered_uri(server, "db://x") for server in ("a", "b", "neither")]
    assert told == ["db://x", "b+db://x", "db://x"]


def test_a_completion_names_a_template_or_a_uri() -> None:
    """2026-07-28, server/utilities/completion: `ref/resource` carries either."""
    catalog = merged(templates("a", "db://{t}"), templates("b", "db://{t}"))
    text = catalog.resolve(Kind.TEMPLATE, "b+db://{t}")
    uri = catalog.resolve(Kind.TEMPLATE, "db://x")
    assert text is not None
    assert uri is not None
    assert text.route == Route("b", Kind.TEMPLATE, "db://{t}")
    assert uri.route.name == "db://x"


@pytest.mark.parametrize(
    ("listed", "asked"),
    [
        ("file:///a b.txt", "file:///a%20b.txt"),
        ("file:///a%20b.txt", "file:///a b.txt"),
        ("file:///caf%c3%a9", "file:///café"),
        ("file:///plain-name", "file:///plain%2Dname"),
    ],
)
def test_another_spelling_of_a_listed_uri_leads_to_it_under_its_own(
    listed: str, asked: str
) -> None:
    catalog = merged(resources("a", listed))
    found = catalog.resolve(Kind.RESOURCE, asked)
    assert found is not None
    assert found.route.name == found.name == listed


def test_a_uri_without_end_matches_no_template() -> None:
    catalog = merged(templates("a", "db://{+t}"))
    assert catalog.resolve(Kind.RESOURCE, "db://" + "x" * 10_000_000) is None
    assert catalog.resolve(Kind.RESOURCE, "db://" + "é" * 8000) is None


# --- the rest --------------------------------------------------------------------------------


def test_capabilities_are_those_of_all_and_lists_are_private_if_any_is() -> None:
    one = replace_listing(tools("a", "x"), capabilities=frozenset({"tools"}))
    two = replace_listing(tools("b", "x"), capabilities=frozenset({"logging"}), private=True)
    assert merged(one, two).capabilities == {"tools", "logging"}
    assert merged(one, two).private
    assert not merged(one).private


def replace_listing(listing: Listing, **changes: object) -> Listing:
    return msgspec.structs.replace(listing, **changes)


def test_templates_without_end_of_one_server_cost_little_and_hide_those_of_no_other() -> None:
    endless = ["{a}-" * 5_000 + "!", *(f"{{+a}}{{b}}/{n}" for n in range(2_000))]
    catalog = merged(templates("a", *endless), templates("b", "db://{+t}"))
    started = time.process_time()
    for filler in ("-", "/", "x"):
        found = catalog.resolve(Kind.RESOURCE, "db://" + filler * 8_000)
        assert found is not None
        assert found.route.server == "b"
    assert time.process_time() - started < 2  # some 50 ms; unbounded, minutes


def test_a_uri_that_is_not_allowed_is_not_found_through_a_template_either() -> None:
    kept = merged(templates("a", "file:///{+path}")).keep(lambda entry: "secret" not in entry.name)
    assert kept.resolve(Kind.RESOURCE, "file:///open") is not None
    assert kept.resolve(Kind.RESOURCE, "file:///secret") is None


def test_a_catalog_without_some_entries_is_otherwise_the_same() -> None:
    catalog = merged(tools("a", "x", "y"), resources("a2", "file:///a b"))
    kept = catalog.keep(lambda entry: entry.name != "a__x")
    assert names(kept) == ["a__y"]
    assert kept.resolve(Kind.TOOL, "a__x") is None
    assert kept.resolve(Kind.RESOURCE, "file:///a%20b") is not None
    assert catalog.keep(lambda entry: True) == catalog
    bare = catalog.keep(lambda entry: entry.route.kind is Kind.TOOL)
    assert bare.resolve(Kind.RESOURCE, "file:///a%20b") is None
    assert replace(kept, entries=catalog.entries, order=catalog.order) == catalog
