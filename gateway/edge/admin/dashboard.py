"""The dashboard's files, read once: one page, no build step, nothing from other hosts."""

from importlib.resources import files
from importlib.resources.abc import Traversable


def _read(folder: Traversable) -> dict[str, tuple[bytes, str]]:
    """Path to bytes and content type."""
    kinds = {
        "/": ("index.html", "text/html; charset=utf-8"),
        "/dashboard.css": ("dashboard.css", "text/css; charset=utf-8"),
        "/dashboard.js": ("dashboard.js", "text/javascript; charset=utf-8"),
    }
    return {path: ((folder / name).read_bytes(), kind) for path, (name, kind) in kinds.items()}


DASHBOARD = _read(files("gateway.edge.admin") / "page")
