"""The timeline on a page: its style and scripts, the element that holds its data, and a document of its own."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from html import escape
from importlib import resources

SCRIPTS = ("words.js", "packed.js", "lanes.js", "charts.js", "timeline.js")
"""Ours, in the order in which they stand within one function; uPlot comes before them."""
NO_SCRIPT = "This timeline is drawn by a script, which your browser does not run."
PREFERS_DARK = "(prefers-color-scheme: dark)"
DARK_NOTEBOOK = ':is([data-jp-theme-light="false"], .vscode-dark, [theme="dark"])'
"""What a dark JupyterLab, VS Code and Colab say on their pages, whatever the system prefers."""
MARK = 'class="gd-timeline"'
"""What a page has where it holds a timeline."""


@cache
def asset(name: str) -> str:
    """A file of ours or uPlot's."""
    return resources.files("gpudiag").joinpath(f"report/timeline/assets/{name}").read_text(encoding="utf-8")


@cache
def style() -> str:
    """The style sheets."""
    return asset("uPlot.min.css") + asset("timeline.css")


@cache
def script() -> str:
    """All scripts as one. It finds the timelines of a page by itself, after they have been parsed."""
    own = "\n".join(map(asset, (*SCRIPTS, "start.js")))
    return f'{asset("uPlot.iife.min.js")}\n(() => {{\n"use strict";\n{own}}})();\n'


@cache
def widget_style() -> str:
    """The style sheets for an output of a notebook, whose theme decides what is dark."""
    return style().replace(f"@media {PREFERS_DARK}", DARK_NOTEBOOK)


@cache
def widget_script() -> str:
    """The same drawing as a module for anywidget."""
    return "\n".join(map(asset, ("uPlot.iife.min.js", *SCRIPTS, "widget.js")))


@cache
def policy(*scripts: str) -> str:
    """The Content-Security-Policy of a page that runs these scripts, by default :func:`script`, and loads nothing."""
    digests = [b64encode(sha256(one.encode()).digest()).decode() for one in scripts or (script(),)]
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src {allowed}"


def element(packed: str, mark: str = MARK) -> str:
    """The place of a timeline, or what ``mark`` says, with its data, hidden until a script shows it."""
    data = f'<script type="application/octet-stream">{packed}</script>'  # no script to a browser: it is data
    return f"<div {mark} hidden>{data}</div>"


def document(packed: str, title: str) -> str:
    """A page with one timeline, which needs a script to be seen."""
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy()}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}</title><style>body {{ margin: 0; }}\n{style()}</style></head>"
        f"<body><main>{element(packed)}<noscript>{NO_SCRIPT}</noscript></main><script>{script()}</script></body></html>"
    )
