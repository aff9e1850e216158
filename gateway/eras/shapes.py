"""Definitions and results as each revision can express them. Pure.

Applied only where something would be illegal for its receiver; everything else,
unknown members included, goes through as it came. Source: the changelogs of
2025-03-26 (audio, annotations), 2025-06-18 (links, structured content) and
2026-07-28 (any output schema; `execution` left the core).
"""

from collections.abc import Collection

from gateway.catalog.entries import Kind
from gateway.protocol.jsonrpc import Fields, Json, Raw, as_bytes, decoded, elements, shallow, value
from gateway.protocol.revisions import Revision


def definition(kind: Kind, fields: Fields, revision: Revision) -> Fields:
    """What the list of this revision says of one entry."""
    if kind is not Kind.TOOL:
        return fields
    gone: set[str] = set()
    if revision.any_output:
        gone.add("execution")
    elif "outputSchema" in fields and not _is_object_schema(fields["outputSchema"]):
        gone.add("outputSchema")
    if not revision.annotations:
        gone.add("annotations")
    return without(fields, gone)


def result(fields: Fields, revision: Revision) -> Fields:
    """A call's result as this revision can express it."""
    if not revision.any_output and "structuredContent" in fields:
        fields = _objects_only(fields)
    if revision.audio and revision.resource_links:
        return fields
    for member in ("content", "messages"):
        if member in fields:
            fields = {**fields, member: _older(fields[member], revision)}
    return fields


def without(fields: Fields, gone: Collection[str]) -> Fields:
    """The same members but these; the very same object if none of them is there."""
    for name in gone:
        if name in fields:
            found = set(gone)
            return {k: v for k, v in fields.items() if k not in found}
    return fields


def _is_object_schema(schema: Json) -> bool:
    return bool(value(shallow(schema) or {}, "type") == "object")


def _objects_only(fields: Fields) -> Fields:
    """Before 2026-07-28 structured content is an object; any other becomes text, if it
    is not there as text already."""
    structured = fields["structuredContent"]
    if shallow(structured) is not None:
        return fields
    kept = without(fields, {"structuredContent"})
    if elements(kept.get("content")):
        return kept
    text = as_bytes(structured).decode()
    return {**kept, "content": [{"type": "text", "text": text}]}


def _older(blocks: Json, revision: Revision) -> Json:
    if isinstance(blocks, Raw) and b"audio" not in bytes(blocks) and b"link" not in bytes(blocks):
        return blocks
    return [older_block(decoded(block), revision) for block in elements(blocks) or ()]


def older_block(block: Json, revision: Revision) -> Json:
    """One content block, decoded, as this revision has it; what it lacks becomes text."""
    if not isinstance(block, dict):
        return block
    if isinstance(block.get("content"), dict):  # a prompt's message holds one block
        return {**block, "content": older_block(block["content"], revision)}
    if block.get("type") == "audio" and not revision.audio:
        kind = block.get("mimeType", "audio")
        return {"type": "text", "text": f"[{kind}: this client's protocol has no audio]"}
    if block.get("type") == "resource_link" and not revision.resource_links:
        told = " ".join(str(block[key]) for key in ("name", "description") if block.get(key))
        return {"type": "text", "text": f"{block.get('uri', '')} {told}".strip()}
    return block
