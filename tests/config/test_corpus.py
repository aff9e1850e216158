"""Good and bad configurations as files: what people read, and that editors are told the same."""

from pathlib import Path

import jsonschema_rs
import pytest

from gateway.config.reading import read_document
from gateway.config.schema import schema
from tests.config.corpus import error_of, files_of, load_file, plain

VALIDATOR = jsonschema_rs.validator_for(schema())
REFUSED = [*files_of("bad"), *files_of("beyond_schema"), *files_of("unreadable")]


def _name(file: Path) -> str:
    return f"{file.parent.name}/{file.name}"


def _schema_takes(file: Path) -> bool:
    document = read_document(file, file.name)
    return bool(VALIDATOR.is_valid(plain(document.root)))


@pytest.mark.parametrize("file", files_of("good"), ids=_name)
def test_a_good_file_is_taken_by_loader_and_schema(file: Path) -> None:
    assert load_file(file).config.servers is not None
    assert _schema_takes(file)


@pytest.mark.parametrize("file", files_of("bad"), ids=_name)
def test_a_bad_file_is_refused_by_the_schema_as_well(file: Path) -> None:
    assert error_of(file)
    assert not _schema_takes(file)


@pytest.mark.parametrize("file", files_of("beyond_schema"), ids=_name)
def test_only_the_loader_knows_what_a_schema_cannot_say(file: Path) -> None:
    assert error_of(file)
    assert _schema_takes(file)


@pytest.mark.parametrize("file", REFUSED, ids=_name)
def test_the_error_is_the_one_written_down(file: Path) -> None:
    assert error_of(file) == file.with_suffix(file.suffix + ".txt").read_text()


@pytest.mark.parametrize("file", REFUSED, ids=_name)
def test_no_error_shows_what_could_be_a_secret(file: Path) -> None:
    assert "canary" not in error_of(file)
