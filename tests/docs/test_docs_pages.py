"""Each page of docs/ is on the site, its links lead to a file and a heading, and the commands that it names exist."""

from __future__ import annotations

import ast
import json
import re
from functools import cache
from pathlib import Path

from typer.core import TyperGroup
from typer.main import get_command

from gpudiag import __version__
from gpudiag.cli import app
from gpudiag.measures._trials.proportions import wilson_pct
from gpudiag.measures.base import NVIDIA_SMI
from gpudiag.plots._draw.causes import LABELS
from gpudiag.report._sections.ledger import CELLS
from gpudiag.rules._engine.verdict import Severity, Status
from gpudiag.schema import OUTCOMES

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
MADE = [line.rstrip("/") for line in (ROOT / ".gitignore").read_text("utf-8").split() if line.startswith("docs/")]
"""What make docs writes below docs/: it may be there or not."""
LEFT_OUT = re.findall(
    r'"(\S+\.md)"', re.findall(r"^exclude_patterns = .*$", (DOCS / "conf.py").read_text("utf-8"), re.M)[0]
)
"""Pages for readers of the repository, which are not on the site."""


def _written(path: Path) -> bool:
    name = path.relative_to(ROOT).as_posix()
    return not any(name == made or name.startswith(f"{made}/") for made in MADE)


PAGES = sorted(filter(_written, DOCS.rglob("*.md")))
LINK = re.compile(r"\]\((?!\w+:|<)([^)#\s]*)(?:#([^)\s]*))?\)")


@cache
def _text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


@cache
def _prose(page: Path) -> str:
    """A page without what stands in code."""
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", _text(page), flags=re.MULTILINE | re.DOTALL))


@cache
def _anchors(page: Path) -> set[str]:
    """Headings as GitHub and the site name them; a second one of the same name gets a number."""
    seen: dict[str, int] = {}
    for heading in re.findall(r"^#{1,6} +(.+?)#* *$", re.sub(r"^```.*?^```", "", _text(page), flags=re.M | re.S), re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]", r"\1", heading).strip().lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        seen[slug] = seen.get(slug, -1) + 1
    return {slug if n == 0 else f"{slug}-{n}" for slug, most in seen.items() for n in range(most + 1)}


def test_every_page_is_in_a_table_of_contents() -> None:
    listed = {DOCS / "index.md"}
    for page in PAGES:
        for block in re.findall(r"^(`{3,}|:{3,})\{toctree\}\n(.*?)^\1", _text(page), re.MULTILINE | re.DOTALL):
            names = [line.strip() for line in block[1].splitlines() if line.strip() and not line.startswith(":")]
            listed |= {(page.parent / re.sub(r".*<(.*)>$", r"\1", name)).resolve().with_suffix(".md") for name in names}
    assert sorted(set(PAGES) - listed - {DOCS / name for name in LEFT_OUT}) == []
    assert sorted(filter(_written, listed - set(PAGES))) == []


def test_links_lead_to_a_file_and_a_heading() -> None:
    wrong = []
    for page in PAGES:
        for path, anchor in LINK.findall(_prose(page)):
            target = (page.parent / path).resolve() if path else page
            if target.is_relative_to(DOCS) and not _written(target):
                continue
            if not target.exists() or (anchor and target.suffix == ".md" and anchor not in _anchors(target)):
                wrong.append(f"{page.relative_to(DOCS)}: {path}#{anchor}")
        cards = re.findall(r"^:link: (\S+)\n:link-type: doc$", _text(page), re.MULTILINE)
        wrong.extend(f"{page.name}: {name}" for name in cards if not (page.parent / f"{name}.md").exists())
    assert wrong == []


def test_a_page_that_is_a_file_of_the_repository_links_to_it() -> None:
    """On GitHub it is a page with that link; the site has the text of the file in its place."""
    source = (DOCS / "_site" / "outside.py").read_text(encoding="utf-8")
    held: dict[str, str] = ast.literal_eval(re.findall(r"^PAGES = (\{.*?^\})", source, re.MULTILINE | re.DOTALL)[0])
    for page, file in held.items():
        (link,) = LINK.findall(_text(DOCS / f"{page}.md"))
        assert (DOCS / page).parent.joinpath(link[0]).resolve() == ROOT / file
    linked = {(page.parent / path).resolve() for page in PAGES for path, _ in LINK.findall(_prose(page))}
    outside = {path for path in linked if not path.is_relative_to(DOCS)}
    assert outside <= {ROOT / file for file in held.values()} | {ROOT / "benchmarks"}


def _commands(page: Path) -> list[str]:
    """What follows ``gpudiag`` on lines of code, up to what the shell or the reader gets."""
    blocks = re.findall(r"^```(?:sh|console|text)\n(.*?)^```", _text(page), re.MULTILINE | re.DOTALL)
    blocks += re.findall(r"^ {4}(.*)$", re.sub(r"^```.*?^```", "", _text(page), flags=re.M | re.S), re.MULTILINE)
    lines = re.findall(r"^(?:\$ )?gpudiag +([a-z].*)$", "\n".join(blocks), re.MULTILINE)
    return [re.split(r" #| -- |[;|>]| {2,}", line)[0] for line in lines]


def test_commands_and_their_options_exist() -> None:
    group, wrong, seen = get_command(app), [], 0
    for page in PAGES:
        for line in _commands(page):
            command, words = group, line.split()
            while words and isinstance(command, TyperGroup):
                command = command.commands.get(words.pop(0))
            options = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
            known = {name for one in command.params for name in one.opts} if command else set()
            seen += 1
            if command is None or options - known - {"--help"}:
                wrong.append(f"{page.relative_to(DOCS)}: gpudiag {line}")
    assert wrong == []
    assert seen > 60


def test_what_records_a_gpu_without_gpudiag_is_one_command() -> None:
    command = NVIDIA_SMI.format(period_s=1)
    pages = (ROOT / "README.md", DOCS / "start" / "your-files.md", DOCS / "ci.md")
    for page in pages:
        assert command in _text(page)
    for page in (*pages, *PAGES):
        assert _text(page).count("nvidia-smi --query-gpu=timestamp,") == _text(page).count(command), page


def test_the_glossary_has_the_words_of_the_code() -> None:
    rows = {
        word: rest.split(" | ")
        for word, rest in re.findall(r"^\| (.+?) \| (.*) \|$", _text(DOCS / "concepts" / "glossary.md"), re.MULTILINE)
    }
    assert {name: rows.get(name) for name, _ in CELLS.values()} == {
        name: [meaning, f"`{cell}`"] for cell, (name, meaning) in CELLS.items()
    }
    assert {name: rows.get(name, [""])[-1] for name in LABELS.values()} == {
        name: f"`{cause}`" for cause, name in LABELS.items()
    }
    states = {f"`{state}`" for state in OUTCOMES}
    statuses = {status.value.replace("_", " ") for status in Status} - {"found", "suppressed", "error"}
    assert {*states, *statuses, *(severity.value for severity in Severity), "finding"} <= set(rows)


def test_the_switcher_knows_this_version() -> None:
    versions = json.loads((DOCS / "_static" / "switcher.json").read_text(encoding="utf-8"))
    assert [one["version"] for one in versions if one.get("preferred")] == [__version__]


def test_intervals_on_the_pages_are_those_of_gpudiag() -> None:
    page, memory = ((DOCS / name).read_text("utf-8") for name in ("concepts/intervals.md", "howto/out-of-memory.md"))
    rows = re.findall(r"^\| (\d+) of (\d+) \w+ \| [\d.]+ % \| ([\d.]+)–([\d.]+) % \|$", page, re.M)
    assert len(rows) == 4
    for hits, n, *shown in rows:
        for bound, pct in zip(wilson_pct(int(hits), int(n)), shown, strict=True):
            assert abs(bound - float(pct)) < (0.5 if pct.isdigit() and pct != "0" else 0.05), (hits, n)
    clean = re.search(r"about 4/n: after 50 clean trials it may still be\s([\d.]+) %", page)
    again = re.search(r"After 50 trials without one, a rate of\sup to ([\d.]+) %", memory)
    assert clean and again and clean[1] == again[1] == f"{wilson_pct(0, 50)[1]:.1f}"
