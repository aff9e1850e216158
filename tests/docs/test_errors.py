"""Every kind of error has its entry, with the code it has on the wire."""

from pathlib import Path

from gateway.protocol import errors

PAGE = (Path(__file__).parents[2] / "docs" / "errors.md").read_text()
ROWS = {row.split("|")[1].strip(" `"): row for row in PAGE.splitlines() if row.startswith("| `")}


def _family() -> list[type[errors.GatewayError]]:
    found = [errors.GatewayError]
    for one in found:
        found += one.__subclasses__()
    return found


def test_every_kind_has_an_entry_and_every_entry_is_a_kind() -> None:
    assert {one.kind for one in _family()} == set(ROWS)


def test_codes_of_our_own_stand_beside_their_kind() -> None:
    ours = {one.kind: one.code for one in _family() if one.code > -32000}
    assert len(ours) == 6
    assert all(str(code) in ROWS[kind] for kind, code in ours.items())
