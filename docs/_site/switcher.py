"""The switcher between versions of the site, there where GPUDIAG_DOCS_URL says at which address the site will be."""

from __future__ import annotations

import json
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config

VERSIONS = Path(__file__).resolve().parents[1] / "_static" / "switcher.json"
"""As the theme reads it, but that ``url`` is below the address of the site."""


def _switched_on(app: Sphinx, config: Config) -> None:
    base = config.gpudiag_docs_url.rstrip("/")
    if base:
        options = config.html_theme_options
        options["switcher"] = {"json_url": f"{base}/_static/switcher.json", "version_match": config.version}
        options["check_switcher"] = False  # it would be fetched
        options["navbar_end"] = ["version-switcher", *options["navbar_end"]]


def _written(app: Sphinx, failed: Exception | None) -> None:
    base, path = app.config.gpudiag_docs_url.rstrip("/"), Path(app.outdir, "_static", VERSIONS.name)
    if failed or app.builder.format != "html":
        return
    if not base:
        path.unlink(missing_ok=True)
        return
    versions = json.loads(VERSIONS.read_text(encoding="utf-8"))
    there = [{**one, "url": f"{base}/{one['url'].lstrip('/')}"} for one in versions]
    path.write_text(json.dumps(there, indent=2) + "\n", encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_config_value("gpudiag_docs_url", "", "html")
    app.connect("config-inited", _switched_on, priority=100)  # before the theme reads its options
    app.connect("build-finished", _written)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
