"""Displays in VS Code's notebooks: the colours of its themes, which its page states as classes and variables."""

from __future__ import annotations

from html import escape
from typing import Any

import pytest
from sampleruns import diagnosed

pytestmark = [pytest.mark.browser, pytest.mark.slow]

THEMES = {  # class of the body; foreground, ground, description, band behind code and links, as VS Code 1.100 has them
    "Light Modern": ("vscode-light", "#3b3b3b", "#ffffff", "#3b3b3b", "#0000001f", "#005fb8"),
    "Dark Modern": ("vscode-dark", "#cccccc", "#1f1f1f", "#9d9d9d", "#3c3c3c", "#4daafc"),
    "Dark High Contrast": ("vscode-high-contrast", "#ffffff", "#000000", "#ffffffb3", "#ffffff", "#21a6ff"),
    "Light High Contrast": (
        "vscode-high-contrast vscode-high-contrast-light", "#292929", "#ffffff", "#292929b3", "#09345f",
        "#0f4a85",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def shown() -> str:
    return diagnosed("hpo-aggressive-pruning")._repr_html_()


@pytest.mark.parametrize("theme", THEMES)
def test_it_can_be_read_in_every_theme_whatever_the_system_prefers(
    theme: str, browser: Any, contrast: str, shown: str
) -> None:
    kind, ink, paper, soft, band, link = THEMES[theme]
    page = browser.new_page()
    page.set_content(
        f"<style>:root {{ --vscode-editor-foreground: {ink}; --vscode-editor-background: {paper}; "
        f"--vscode-descriptionForeground: {soft} }} body {{ color: {ink}; background: {paper} }} "
        f"code {{ color: {ink}; background-color: {band} }} a {{ color: {link} }}</style>"
        f'<body class="{escape(kind)}">{shown}</body>'
    )
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate(contrast, ".gpudiag") == [], scheme
        assert page.locator(".gpudiag .gd-headline").evaluate("e => getComputedStyle(e).color") == page.evaluate(
            "getComputedStyle(document.body).color"
        ), scheme
    page.close()
