"""``gpudiag rules``: the questions that are asked of a run."""

from __future__ import annotations

from typing import Annotated

import typer

from gpudiag.cli._arguments import rule_modules
from gpudiag.cli._console import console_for
from gpudiag.cli._options import RuleModules, choice
from gpudiag.errors import ConfigError, nearest

rules_app = typer.Typer(help="The questions that gpudiag asks of a run.", no_args_is_help=True)


@rules_app.command("list")
def rules_list(
    format_: Annotated[str, choice("--format", "text", "json", "md")] = "text", rules: RuleModules = None
) -> None:
    """List every rule with its thresholds."""
    from gpudiag.report.rules import rules_json, rules_markdown, rules_text
    from gpudiag.rules._engine.own import chosen_rules

    width = console_for().width
    render = {"text": lambda rules: rules_text(rules, width), "json": rules_json, "md": rules_markdown}[format_]
    typer.echo(render(chosen_rules(rule_modules(rules))))


@rules_app.command("explain")
def rules_explain(rule_id: Annotated[str, typer.Argument(metavar="ID")], rules: RuleModules = None) -> None:
    """Explain one rule: why it matters, its thresholds and their source."""
    from gpudiag.report._render.terminal import MAX_WIDTH
    from gpudiag.report.rules import rule_text
    from gpudiag.rules._engine.own import chosen_rules

    by_id = {rule.id: rule for rule in chosen_rules(rule_modules(rules))}
    if rule_id not in by_id:
        raise ConfigError(f"there is no rule '{rule_id}'; {nearest(rule_id, by_id)}")
    typer.echo(rule_text(by_id[rule_id], min(console_for().width, MAX_WIDTH)))
