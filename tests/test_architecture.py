"""The arrows of ARCHITECTURE.md: imports only point down, in all forms, inside functions too."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "gpudiag"

LAYERS = (
    ("errors", "faults", "facts", "schema", "units", "interpreter", "plain_data"),
    ("shown", "format", "sentence"),
    ("clock", "hardware", "manifest"),
    ("readers",),
    ("run", "run_tables", "run_source", "declared", "selection", "alignment", "intake", "folder", "load", "inspection"),
    ("memo",),
    ("measures", "simulation"),
    ("forecast",),
    ("analysis",),
    ("rules", "plots", "advice"),
    ("report", "record"),
    ("diagnosis",),
    ("comparison", "export"),
    ("cli", "schemas", "__main__"),
)
LEVEL = {name: level for level, layer in enumerate(LAYERS) for name in layer}
NEVER = {
    ("rules", "plots"),
    ("plots", "rules"),
    ("advice", "plots"),
    ("plots", "advice"),
    ("rules", "advice"),
    ("simulation", "measures"),
    ("measures", "simulation"),
}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def part_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return _part(list(parts))


def _part(names: list[str]) -> str:
    """A folder is one part, but for the formatter: report/ holds it, and whoever says a number uses it."""
    return names[1] if names[0] == "report" and names[1:2] in (["format"], ["sentence"]) else names[0]


def imported_parts(path: Path) -> set[str]:
    """First components below ``gpudiag`` of everything the file imports, TYPE_CHECKING blocks left out."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    parts: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        parts |= {_part(name.split(".")[1:]) for name in names if name.startswith("gpudiag.")}
    return parts


def imported_roots(path: Path) -> set[str]:
    """Top-level packages that the file imports, however it spells the import."""
    tree = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    nodes = [node for node in tree if isinstance(node, ast.Import | ast.ImportFrom)]
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_down(path: Path) -> None:
    part = part_of(path)
    if part == "__init__":
        assert imported_parts(path) <= set()
        return
    assert part in LEVEL, f"{part} has no place in the layers of ARCHITECTURE.md; add it to LAYERS"
    for other in imported_parts(path) & set(LEVEL):
        assert LEVEL[other] <= LEVEL[part], f"{path.name}: {part} must not import {other}, which is above it"
        assert (part, other) not in NEVER, f"{path.name}: {part} must not import {other}"


def test_every_layer_exists() -> None:
    assert set(LEVEL) == {part_of(p) for p in modules()} - {"__init__"}


def test_public_layers_are_drawn_in_architecture_md() -> None:
    drawn = (PACKAGE.parent / "ARCHITECTURE.md").read_text(encoding="utf-8")
    for name in LEVEL:
        found = re.search(rf"^ +.*\b{name}\b", drawn, re.MULTILINE)
        assert found or name == "__main__", f"{name} is not among the arrows of ARCHITECTURE.md"


def test_nobody_unpickles_or_evaluates() -> None:
    for path in modules():
        calls = {
            ast.unparse(node.func)
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Call)
        }
        assert not imported_roots(path) & {"pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}, path.name
        forbidden = {"eval", "exec", "pickle.load", "pickle.loads", "pd.read_pickle", "yaml.load", "os.system"}
        assert not calls & forbidden, f"{path.name}: {calls & forbidden}"
