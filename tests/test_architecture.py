"""The arrows of ARCHITECTURE.md, file by file: imports only point down and never run in a circle.

Every form of import counts: at the top of a file, within a function, and for the type checker alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "gpudiag"

LAYERS = (
    (
        "values",
        "errors",
        "faults",
        "facts",
        "schema",
        "units",
        "interpreter",
        "statement",
        "plain_data",
        "fourier",
        "patterns",
        "spans",
    ),
    ("scratch", "files"),
    ("shown", "report/format", "report/sentence"),
    ("timezones", "hardware", "manifest"),
    ("readers",),
    ("run", "_run"),
    ("alignment",),
    ("load", "_load"),
    ("memo",),
    ("measures", "simulation"),
    ("forecast",),
    ("analysis",),
    ("rules", "plots"),
    ("advice",),
    ("report", "record", "integrations"),
    ("diagnosis", "_diagnosis"),
    ("comparison", "export", "fleets"),
    ("schemas",),
    ("agents", "trackers", "schedulers", "bug_report"),
    ("cli", "pytest_plugin", "__main__"),
)
LEVEL = {name: level for level, layer in enumerate(LAYERS) for name in layer}
NEVER = {
    ("rules", "plots"),
    ("plots", "rules"),
    ("advice", "plots"),
    ("plots", "advice"),
    ("simulation", "measures"),
    ("measures", "simulation"),
}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def dotted(path: Path) -> str:
    """``gpudiag.rules.memory``; of a package its folder."""
    name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    return name.removesuffix(".__init__")


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """All statements below a node; what no import can stand in is passed over, which is most of a file."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            yield child
            yield from statements(child)


@cache
def imported_names(path: Path) -> frozenset[str]:
    """Dotted names of everything the file imports, wherever the import stands."""
    names: set[str] = set()
    for node in statements(tree_of(path)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return frozenset(names)


@cache
def files() -> dict[str, Path]:
    return {dotted(path): path for path in modules()}


@cache
def edges(name: str) -> frozenset[str]:
    """The files of the package that a file imports: a name in a module counts as its module."""
    found = set()
    for full in imported_names(files()[name]):
        if not full.startswith("gpudiag."):
            continue
        target = full if full in files() else full.rpartition(".")[0]
        found |= {target} & set(files())
    return frozenset(found - {name, "gpudiag"})


def circles() -> list[list[str]]:
    """Groups of files that reach each other by imports (Tarjan's strongly connected components)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in edges(name):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            group = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(group) > 1:
                found.append(sorted(group))

    for name in files():
        if name not in index:
            visit(name)
    return found


def part_of(name: str) -> str:
    """The folder or file below ``gpudiag``; the formatter is a part of its own, since everybody may call it."""
    below = name.split(".")[1:3]
    return "/".join(below) if "/".join(below) in LEVEL else below[0] if below else "__init__"


@pytest.mark.slow
def test_imports_point_down() -> None:
    for name, path in files().items():
        part = part_of(name)
        if part == "__init__":
            imported = {one for one in imported_names(path) if one.startswith("gpudiag.")}
            assert imported <= for_types_only(path), "gpudiag/__init__.py imports a name when it is used"
            continue
        assert part in LEVEL, f"{part} has no place in the layers of ARCHITECTURE.md; add it to LAYERS"
        for other in {part_of(one) for one in edges(name)} & set(LEVEL):
            assert LEVEL[other] <= LEVEL[part], f"{name}: {part} must not import {other}, which is above it"
            assert (part, other) not in NEVER, f"{name}: {part} must not import {other}"


def for_types_only(path: Path) -> set[str]:
    """What is imported within ``if TYPE_CHECKING``."""
    blocks = [n for n in tree_of(path).body if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING"]
    imports = [n for block in blocks for n in block.body if isinstance(n, ast.ImportFrom)]
    return {f"{node.module}.{alias.name}" for node in imports for alias in node.names}


def test_no_imports_run_in_a_circle() -> None:
    assert circles() == []


def test_a_circle_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check itself: a file that imports what imports it."""
    down = {
        "gpudiag.a": {"gpudiag.b"},
        "gpudiag.b": {"gpudiag.c"},
        "gpudiag.c": {"gpudiag.a"},
        "gpudiag.d": {"gpudiag.c"},
    }
    monkeypatch.setitem(globals(), "files", lambda: down)
    monkeypatch.setitem(globals(), "edges", lambda name: down[name])
    assert circles() == [["gpudiag.a", "gpudiag.b", "gpudiag.c"]]


def test_every_layer_exists() -> None:
    assert set(LEVEL) == {part_of(dotted(p)) for p in modules()} - {"__init__"}


def test_architecture_md_draws_the_layers_and_says_what_each_folder_is() -> None:
    """Each layer stands on a line of its own among the arrows, in the order of LAYERS; each folder has its sentence."""
    drawn = (PACKAGE.parent / "ARCHITECTURE.md").read_text(encoding="utf-8")
    arrows = drawn.partition("## The arrows\n")[2].partition("\n## ")[0]
    rows = [set(line.strip().split("   ")[0].split(", ")) for line in arrows.splitlines() if line.startswith("    ")]
    assert rows == [set(layer) - {"__main__"} for layer in LAYERS]
    for folder in sorted(p for p in PACKAGE.rglob("*") if p.is_dir() and any(p.glob("*.py"))):
        name = folder.relative_to(PACKAGE).as_posix()
        assert re.search(rf"^\| `{re.escape(name)}/` \| \S", drawn, re.MULTILINE), f"{name}/ has no sentence"


@pytest.mark.slow
def test_nobody_unpickles_or_evaluates() -> None:
    for path in modules():
        calls = {ast.unparse(node.func) for node in ast.walk(tree_of(path)) if isinstance(node, ast.Call)}
        roots = {name.partition(".")[0] for name in imported_names(path)}
        assert not roots & {"pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}, path.name
        forbidden = {"eval", "exec", "pickle.load", "pickle.loads", "pd.read_pickle", "yaml.load", "os.system"}
        assert not calls & forbidden, f"{path.name}: {calls & forbidden}"


def test_no_text_holds_both_sides_of_a_merge() -> None:
    """A line that marks a conflict was once committed in the middle of the methods."""
    marks = re.compile(r"^(?:<{7}|>{7}) \S", re.MULTILINE)
    root = PACKAGE.parent
    folders = [root / name for name in ("benchmarks", "data", "docs", "gpudiag", "notebooks", "tests")]
    texts = [*root.glob("*.md"), *(path for folder in folders for path in folder.rglob("*"))]
    texts = [path for path in texts if path.suffix in (".md", ".py", ".ipynb", ".json", ".csv")]
    assert len(texts) > 1000
    assert [path for path in texts if marks.search(path.read_text(encoding="utf-8", errors="replace"))] == []
