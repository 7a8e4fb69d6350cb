"""Pages made of an executed notebook: nothing loaded from elsewhere, files written whole."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

import nbformat
import pytest
from toyrun import TOY_RULES, toy_run

from gpudiag.diagnosis import Diagnosis, diagnose
from gpudiag.report._notebook import pages
from gpudiag.report._render.show import MAX_SVG_CHARS


@pytest.fixture(scope="module")
def notebook(toy: Diagnosis) -> nbformat.NotebookNode:
    """The report of the toy run; its figures are drawn once."""
    return pages.filled("run_report", toy.show)


@pytest.fixture(scope="module")
def html(notebook: nbformat.NotebookNode) -> str:
    return pages.html_page(notebook)


@pytest.mark.slow
def test_html_loads_nothing_and_forbids_loading(html: str) -> None:
    parts = re.findall(r"<script[^>]*>(.*?)</script>", html, re.DOTALL)
    data, scripts = parts[:2], parts[2:]
    assert html.count("<script") == 4 and all(re.fullmatch(r"[A-Za-z0-9+/=]+", one) for one in data)
    digests = [b64encode(sha256(script.encode()).digest()).decode() for script in scripts]
    assert 'script-src {}"'.format(" ".join(f"'sha256-{digest}'" for digest in digests)) in html
    for script in scripts:
        html = html.replace(script, "")
    assert not re.search(r"<(link|iframe|object|embed)\b", html)
    assert "url(" not in html and "@import" not in html
    sources = re.findall(r'\b(?:src|href|srcset|action|poster)="([^"]*)"', html)
    assert sources and all(source.startswith(("data:image/", "#")) for source in sources)
    assert "default-src 'none'" in html
    assert len(html) < 5_000_000


@pytest.mark.slow
def test_html_is_a_whole_page(html: str) -> None:
    assert re.match(r'<!DOCTYPE html>\s*<html lang="en">', html)
    assert "<title>toy</title>" in html and html.count("<h1>") == 1
    contents = re.findall(r'<li><a href="#([^"]+)">', html)
    headings = re.findall(r'<h2 id="([^"]+)">', html)
    assert contents == headings * 2 and len(set(headings)) == len(headings)
    assert html.count("<style>") == 1


@pytest.mark.slow
def test_cells_for_the_reader_of_the_notebook_are_left_out(html: str, toy: Diagnosis) -> None:
    assert "Set the parameters below" not in html and "Set the parameters below" not in toy.to_markdown()


def test_prose_over_a_section_without_data_is_left_out(toy: Diagnosis) -> None:
    prose = "Every second of every GPU is in one category"
    blind = diagnose(toy_run(trials=0, samples=0), rules=TOY_RULES).to_markdown()
    assert prose in toy.to_markdown() and prose not in blind
    assert "## Where the GPU time went\n\n*There is no" in blind


@pytest.mark.slow
def test_markdown_refers_to_its_pictures(notebook: nbformat.NotebookNode, tmp_path: Path) -> None:
    pages.write_markdown(tmp_path / "report.md", notebook, full=True)
    text = (tmp_path / "report.md").read_text()
    pictures = re.findall(r"!\[([^\]]+)\]\(([^)]+)\)", text)
    assert len(pictures) >= 6
    for alt, path in pictures:
        assert len(alt) > 20 and (tmp_path / path).read_bytes().startswith((b"<?xml", b"\x89PNG"))
    assert {p.name for p in (tmp_path / "report_files").iterdir()} == {Path(path).name for _, path in pictures}
    assert "gd.load_run" not in text


@pytest.mark.slow
def test_a_picture_too_large_as_svg_becomes_png(toy: Diagnosis, monkeypatch: pytest.MonkeyPatch) -> None:
    picture = toy.picture("timeline")
    from gpudiag.report._render import show

    assert "image/svg+xml" in show.image(picture)[0] and len(picture.svg()) < MAX_SVG_CHARS
    monkeypatch.setattr(show, "MAX_SVG_CHARS", 10)
    data, said = show.image(picture)
    assert "image/png" in data and "data:image/png;base64,iVBOR" in data["text/html"]
    assert said["gpudiag"]["alt"] == picture.alt


@pytest.mark.slow
def test_outputs_of_any_notebook_have_a_place() -> None:
    outputs = [
        nbformat.v4.new_output("stream", name="stdout", text="printed <b>"),
        nbformat.v4.new_output("execute_result", {"text/plain": "plain <b>"}),
        nbformat.v4.new_output(
            "execute_result", {"text/html": "<table><tr><td>1</td></tr></table>", "text/plain": "1"}
        ),
        nbformat.v4.new_output("display_data", {"image/png": "iVBORw0KGgo=", "text/plain": "<Figure>"}),
        nbformat.v4.new_output("display_data", {"text/markdown": "**bold**"}),
        nbformat.v4.new_output("error", ename="E", evalue="v", traceback=["\x1b[31mE\x1b[0m: v"]),
    ]
    cells = [
        nbformat.v4.new_markdown_cell("# A title\n\n## A *part*\n\n## A part"),
        nbformat.v4.new_code_cell("1", outputs=outputs),
    ]
    notebook = nbformat.v4.new_notebook(cells=cells)
    html = pages.html_page(notebook)
    assert "<title>A title</title>" in html
    assert '<h2 id="a-part">' in html and html.count('id="a-part-') == 1
    for part in (
        "printed &lt;b&gt;",
        "plain &lt;b&gt;",
        "<td>1</td>",
        "data:image/png",
        "<strong>bold</strong>",
        ">E<",
    ):
        assert part in html, part
    markdown = pages.markdown_page(notebook)
    for part in ("printed <b>", "plain <b>", "**bold**", "](report_files/figure-1.png)"):
        assert part in markdown.text, part
    assert list(markdown.images) == ["figure-1.png"]
    assert pages.title(nbformat.v4.new_notebook()) == "gpudiag report"


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "new" / "a.txt"
    pages.write(path, "one")
    monkeypatch.setattr(Path, "replace", lambda self, target: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        pages.write(path, "two")
    assert path.read_text() == "one" and [p.name for p in path.parent.iterdir()] == ["a.txt"]


def test_markdown_folds_all_sections_but_the_first_and_full_markdown_none(notebook: nbformat.NotebookNode) -> None:
    folded, full = (pages.markdown_page(notebook, full=each).text for each in (False, True))
    sections = re.findall(r"^## (.+)$", full, re.MULTILINE)
    assert len(sections) >= 8
    assert re.findall(r"^## (.+)$", folded, re.MULTILINE) == sections[:1]
    kept = re.findall(r"^<summary><b>(.+)</b></summary>$", folded, re.MULTILINE)
    assert kept == [one for one in sections[1:] if one in kept] and "Appendix" not in kept
    for text in (folded, full):
        assert text.count("<details>") == text.count("</details>")
    pictures = [set(re.findall(r"\]\((report_files/[^)]+)\)", text)) for text in (folded, full)]
    assert pictures[0] < pictures[1] and len(pictures[1]) >= 6
    assert len(folded.splitlines()) < len(full.splitlines()) / 2 and "report.html" in folded.splitlines()[-1]
