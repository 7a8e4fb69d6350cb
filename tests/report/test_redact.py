"""No password of a storage URL stays in what is written, however the URL spells it."""

from __future__ import annotations

import html
import json

import nbformat
import pytest

from gpudiag.report._notebook.redact import redacted

SECRETS = {
    "postgresql://me:hunter22@db.example/study": "hunter22",
    "postgresql://me:hunt@er22@db.example/study": "er22@",
    "mysql://me:hun'zorn\"22@db.example/study": "zorn",
    "mysql://me:hunter%2F22@db.example/study": "hunter%2F22",
    "sqlite:///study.db?password=hunter22": "hunter22",
    "redis://db.example/0?user=me&password=hunter22&x=1": "hunter22",
    "postgresql://me:ab@db.example/study": ":ab@",
}


@pytest.mark.parametrize("url", SECRETS)
def test_every_spelling_of_every_password_goes(url: str) -> None:
    parameters = {"trials": url, "telemetry": ["gpu.csv"]}
    source = f"trials = {url!r}\n"
    shown = nbformat.v4.new_output("display_data", {"text/html": f"<b>{html.escape(url)}</b>", "text/plain": url})
    said = nbformat.v4.new_output("stream", name="stderr", text=f"cannot connect to {url}")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source, outputs=[shown, said])])
    notebook.metadata["papermill"] = {"parameters": parameters}
    before = nbformat.writes(notebook)
    assert SECRETS[url] in before or json.dumps(SECRETS[url])[1:-1] in before
    redacted(notebook, parameters)
    text = nbformat.writes(notebook)
    assert SECRETS[url] not in text and "hunter" not in text and "22@" not in text
    assert "***" in text
    compile(notebook.cells[0].source, "cell", "exec")


def test_what_holds_no_password_stays_as_it_is() -> None:
    parameters = {"trials": "sqlite:///study.db", "run_path": "a b", "title": "pass the salt"}
    node = {"a": ["see https://example.org/x?page=2 at 12:30", "me@example.org", "sqlite:///study.db"], "n": 1}
    assert redacted(json.loads(json.dumps(node)), parameters) == node


def test_a_url_from_elsewhere_loses_what_looks_like_a_password() -> None:
    text = redacted("reading postgresql://me:hunter22@db/study and mysql://db/x?password=hunter22&a=1", {})
    assert text == "reading postgresql://me:***@db/study and mysql://db/x?password=***&a=1"
