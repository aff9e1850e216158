"""The current catalog, and who has to hear that it changed."""

from gateway.catalog.catalog import changed_kinds
from gateway.catalog.entries import Kind, Listing
from gateway.catalog.notes import fresh
from gateway.catalog.shelf import Shelf
from tests.catalog.listings import merged, names, resources, templates, tool, tools

PREFIXES = {"a": "a", "b": "b"}


def test_the_shelf_starts_empty_and_offers_what_it_is_given() -> None:
    shelf = Shelf(PREFIXES, 50)
    assert names(shelf.current) == []
    assert shelf.restock([tools("a", "x")]) == {Kind.TOOL}
    assert names(shelf.current) == ["a__x"]
    assert shelf.current.serial == 1


def test_the_same_listings_again_change_nothing_at_all() -> None:
    """Cases B54: nobody is notified, and what was derived from the catalog stays valid."""
    shelf = Shelf(PREFIXES, 50)
    shelf.restock([tools("a", "x"), templates("b", "m://{x}")])
    before = shelf.current
    assert shelf.restock([templates("b", "m://{x}"), tools("a", "x")]) == frozenset()
    assert shelf.current is before


def test_a_reader_keeps_what_it_saw() -> None:
    shelf = Shelf(PREFIXES, 50)
    shelf.restock([tools("a", "x")])
    seen = shelf.current
    shelf.restock([tools("a", "y")])
    assert names(seen) == ["a__x"]
    assert names(shelf.current) == ["a__y"]


def test_only_the_kinds_that_differ_are_to_be_read_again() -> None:
    one = merged(tools("a", "x"), resources("b", "m:1"), templates("c", "m:{x}"))
    other = merged(tools("a", "x"), resources("b", "m:2"), templates("c", "m:{x}"))
    third = merged(tools("a", "x"), resources("b", "m:1"), templates("c", "m:{y}"))
    assert changed_kinds(one, other) == {Kind.RESOURCE}
    assert changed_kinds(one, third) == {Kind.RESOURCE}  # templates have no notice of their own
    assert changed_kinds(one, one) == frozenset()


def test_a_changed_description_or_order_is_a_change() -> None:
    shelf = Shelf(PREFIXES, 50)
    shelf.restock([tools("a", "x", "y")])
    assert shelf.restock([tools("a", "y", "x")]) == {Kind.TOOL}
    told = Listing("a", tools=(tool("y", description="new"), tool("x")))
    assert shelf.restock([told]) == {Kind.TOOL}


def test_new_instructions_alone_make_a_new_catalog_that_no_list_hears_of() -> None:
    shelf = Shelf(PREFIXES, 50)
    shelf.restock([tools("a", "x"), Listing("b")])
    before = shelf.current
    assert shelf.restock([tools("a", "x"), Listing("b", instructions="Hi")]) == frozenset()
    assert shelf.current is not before


def test_each_note_is_new_only_once() -> None:
    one = merged(tools("a", "x.y"))
    two = merged(tools("a", "x.y", "z.z"))
    assert [note.name for note in fresh((), one.notes)] == ["x.y"]
    assert [note.name for note in fresh(one.notes, two.notes)] == ["z.z"]
