"""What is known about one check, as blocks: a terminal, a page and docs/rules.md show the same."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape

from gpudiag import __version__
from gpudiag.advice import REMEDIES
from gpudiag.report._render import fragments, markdown
from gpudiag.report._render.blocks import Banner, Block, Masthead, Number, TableBlock, TextWithId
from gpudiag.rules._engine.references import with_links
from gpudiag.rules._engine.rule import Rule
from gpudiag.units import unit_of

BUT = "Not a problem if"
_CODE = re.compile(r"(?<!\[)`([a-z0-9-]+)`")
"""What may be the id of a check or of a recommendation; in a link that there is already, it stays."""


def check_title(rule: Rule) -> Masthead:
    """What the check looks at, and the names that it goes by."""
    return Masthead(rule.checks, (("Check", rule.id), ("Topic", rule.topic), ("Severity", rule.severity.value)))


def check_blocks(rule: Rule, *, cited: bool = False) -> list[Block]:
    """What it finds, why that matters, its limits and where they are from, and what to do.

    With ``cited`` the references to docs/methods.md stay, which :func:`with_links` makes links.
    """
    why, _, source = (rule.docstring if cited else rule.why).partition("\n\n")
    but = rule.refuted_by.removeprefix(BUT)
    said = (
        ("Why it matters", why),
        ("How it is found", source),
        ("What to do", rule.remedy),
        (BUT if but != rule.refuted_by else "But", but),
    )
    told = tuple((head, " ".join(text.split())) for head, text in said if text)
    return [Banner(rule.severity.value, rule.title, told, ()), *_limits(rule), *_recommended(rule)]


def _limits(rule: Rule) -> list[Block]:
    rows = tuple((f"`{rule.id}.{name}`", Number(f"{value:g}{_unit(name)}")) for name, value in rule.thresholds.items())
    return [TableBlock(("Limit, as `--set` and run.toml take it", "Default"), rows)] if rows else []


def _recommended(rule: Rule) -> list[Block]:
    """The recommendations that answer it: one fits a run, or none, as its other numbers say."""
    rows = tuple((TextWithId(one.title, one.id), one.safety, one.effort) for one in REMEDIES if rule.id in one.answers)
    return [TableBlock(("Recommendations that may follow", "Safety", "Effort"), rows)] if rows else []


def _unit(name: str) -> str:
    unit = unit_of(name)
    return "" if unit == "1" else f" {unit}"


def rules_markdown(rules: Sequence[Rule]) -> str:
    """The catalogue of checks, docs/rules.md."""
    head = (
        "# Checks\n\nEach check of a run: what it finds, why that matters, and what to do. Printed by\n"
        "`gpudiag rules list --format md`."
    )
    places = {one.id: f"remedies.md#{one.id}" for one in REMEDIES}
    parts = (f"## {rule.id}\n\n{markdown.inline(rule.checks)} · {check_markdown(rule, places)}" for rule in rules)
    return "\n\n".join([head, *parts])


def check_markdown(rule: Rule, places: Mapping[str, str], methods: str = "methods.md") -> str:
    """A check as Markdown, without what it is called.

    Args:
        rule: the check.
        places: addresses by the id of a recommendation or another check, each of which becomes a link.
        methods: address of docs/methods.md.
    """
    text = with_links(markdown.render(check_blocks(rule, cited=True)), methods)
    return f"{rule.severity.value} · topic {rule.topic}\n\n{with_id_links(text, places)}"


def with_id_links(text: str, places: Mapping[str, str]) -> str:
    """Markdown in which each id in backticks that has an address is a link."""
    return _CODE.sub(lambda found: f"[{found[0]}]({places[found[1]]})" if found[1] in places else found[0], text)


def check_html(rule: Rule) -> str:
    """The page of a check, which loads nothing."""
    from gpudiag.report._notebook.html import page_style  # what only a page shows is loaded for a page

    title = escape(rule.checks)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title} – gpudiag</title>
<style>
{page_style()}
main {{ margin: 0 auto; padding: 2rem 1.25rem 4rem; }}
</style>
</head>
<body class="gpudiag">
<header class="bar"><p class="brand"><strong>gpudiag</strong> <span>where the GPU time went</span></p></header>
<main>
{fragments.render([check_title(rule), *check_blocks(rule)])}
</main>
<footer class="foot"><p>Made by gpudiag {__version__}. This page loads nothing from a network.</p></footer>
</body>
</html>
"""
