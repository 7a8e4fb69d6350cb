"""Every command with its arguments and options, from the command line itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from gpudiag.cli import app
from gpudiag.report._render.markdown import inline

HEAD = """# Command line

`gpudiag COMMAND --help` says the same. Exit codes: 0 fine, 1 `--fail-on` met, 2 bad input or usage with one sentence on
stderr, 3 a fault of gpudiag itself (in part of it, or in a rule of your own, only with `--strict`), 129, 130 or 143
after SIGHUP, Ctrl-C or SIGTERM."""


def commands_page() -> str:
    """The page, a section a command."""
    return "\n\n".join([HEAD, *_sections(typer.main.get_command(app), "gpudiag")]) + "\n"


def _sections(command: Any, name: str) -> Iterator[str]:
    """A command, or those that stand under its name."""
    for below, one in getattr(command, "commands", {}).items():
        yield from _sections(one, f"{name} {below}")
    if not hasattr(command, "commands"):
        yield f"## {name}"
        arguments = [one for one in command.params if not one.opts[0].startswith("-")]
        options = [one for one in command.params if one.opts[0].startswith("-")]
        words = [_argument(one) for one in arguments]
        yield f"```text\n{' '.join([name, *words, '[OPTIONS]' if options else '']).rstrip()}\n```"
        yield "\n\n".join(inline(" ".join(part.split())) for part in (command.help or "").split("\n\n"))
        rows = [(f"`{word}`", _said(one)) for word, one in zip(words, arguments, strict=True)]
        rows += [(_option(one), _said(one)) for one in options if "--help" not in one.opts]
        if rows:
            yield "\n".join(
                [
                    "| Argument or option | Meaning |",
                    "|---|---|",
                    *(f"| {_cell(left)} | {right} |" for left, right in rows),
                ]
            )


def _argument(one: Any) -> str:
    word = f"{one.metavar or one.name.upper()}{'...' if one.nargs == -1 else ''}".replace("......", "...")
    return word if one.required or word.startswith("[") else f"[{word}]"


def _option(one: Any) -> str:
    """Its names, and what it takes; a switch takes nothing."""
    takes = "" if isinstance(one.default, bool) else f" {one.metavar or 'VALUE'}"
    return ", ".join(f"`{name}{takes}`" for name in (*one.opts, *one.secondary_opts))


def _said(one: Any) -> str:
    default = "" if one.default in (None, "", (), []) or isinstance(one.default, bool) else str(one.default)
    parts = (inline(one.help or ""), f"default: `{default}`" if default and "default" not in (one.help or "") else "")
    return _cell("; ".join(part for part in parts if part))


def _cell(text: str) -> str:
    return text.replace("\\|", "|").replace("|", "\\|")
