"""``gpudiag rules``: the questions that are asked of a run."""

from __future__ import annotations

from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Annotated

import typer

from gpudiag.cli._arguments import rule_modules
from gpudiag.cli._console import console_for, say, show
from gpudiag.cli._options import RuleModules, choice
from gpudiag.errors import ConfigError, nearest

rules_app = typer.Typer(help="The questions that gpudiag asks of a run.", no_args_is_help=True)


@rules_app.command("list")
def rules_list(
    format_: Annotated[str, choice("--format", "text", "json", "md")] = "text", rules: RuleModules = None
) -> None:
    """List every rule with its thresholds."""
    from gpudiag.report.check_page import rules_markdown
    from gpudiag.report.rules import rules_json, rules_text
    from gpudiag.rules._engine.own import chosen_rules

    width = console_for().width
    render = {"text": lambda rules: rules_text(rules, width), "json": rules_json, "md": rules_markdown}[format_]
    typer.echo(render(chosen_rules(rule_modules(rules))))


@rules_app.command("explain")
def rules_explain(
    rule_id: Annotated[str, typer.Argument(metavar="ID", help="of a rule, as the list has it")],
    open_: Annotated[bool, typer.Option("--open", help="as a page in the browser")] = False,
    rules: RuleModules = None,
) -> None:
    """Explain one rule: why it matters, its thresholds and their source, and what may be advised."""
    from gpudiag.report.check_page import check_blocks, check_html, check_title
    from gpudiag.rules._engine.own import chosen_rules

    by_id = {rule.id: rule for rule in chosen_rules(rule_modules(rules))}
    if rule_id not in by_id:
        raise ConfigError(f"there is no rule '{rule_id}'; {nearest(rule_id, by_id)}")
    rule = by_id[rule_id]
    if open_:
        _open(check_html(rule))
    else:
        show([check_title(rule), *check_blocks(rule)])


def _open(page: str) -> None:
    """Show the page in a browser; where there is none, say where the page is. It stays, since a browser reads late."""
    import webbrowser

    with NamedTemporaryFile("w", encoding="utf-8", prefix="gpudiag-check-", suffix=".html", delete=False) as file:
        file.write(page)
    shown = webbrowser.open(Path(file.name).as_uri())
    say(file.name if shown else f"There is no browser here; open this page in one: {file.name}")
