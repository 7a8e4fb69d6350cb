"""What a hostile name or text does in what gpudiag writes: nothing."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pandas as pd
import pytest
from commandline import called
from matplotlib.figure import Figure

from gpudiag.cli._streams import write_any_text
from gpudiag.export.tables import _inert
from gpudiag.files import write_all
from gpudiag.report._render.markdown import inline
from gpudiag.report.format import inert_lines, safe

SAMPLES = Path(__file__).resolve().parent.parent.parent / "data" / "samples"
ESCAPE = "\x1b]0;title\x07\x1b[2Jx\n::warning::injected"


COMMANDS = (
    "::error title=x::y",
    "::add-mask::a",
    "##[error]x",
    "##vso[task.setvariable variable=PATH]x",
    "a ##[group]b",
)
"""Of GitHub Actions at the start of a line, of Azure Pipelines anywhere in one."""


def clean(said: str) -> bool:
    return not ({chr(n) for n in range(32)} - {"\n"}) & set(said) and not obeyed(said)


def obeyed(said: str) -> bool:
    """Whether a CI system would find a command of its own in this log."""
    return bool(re.search(r"^\s*::[a-z-]+[^\n]*::|##\w*\[", said, re.MULTILINE))


@pytest.mark.slow
def test_names_hold_no_command_for_a_terminal_or_for_ci(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trial = {"number": 0, "state": "COMPLETE", "value": 1.0, "datetime_start": "2026-03-01 10:00:00", "params": {}}
    (folder / f"{ESCAPE}.json").write_text(json.dumps([trial, trial | {"number": 1}]))
    (folder / f"{ESCAPE}.txt").write_text("no input")
    for arguments in (
        ("inspect", folder),
        ("diagnose", folder),
        ("inspect", f"{folder}/{ESCAPE}.txt"),
        ("diagnose", f"nothing{ESCAPE}"),
    ):
        called(monkeypatch, *arguments)
        held = capsys.readouterr()
        assert clean(held.out) and clean(held.err) and held.out + held.err, arguments
    assert called(monkeypatch, "rules", "explain", ESCAPE) == 2 and clean(capsys.readouterr().err.partition("\n")[2])


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_name_commands_no_ci_system(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert obeyed(name)
    (folder / f"{name}.txt").write_text("no input")
    (folder / "run.toml").write_text(f'name = "{name}"\nartifacts = ["{name}.txt", "gpu.csv"]\n')
    monkeypatch.chdir(folder)
    runs = (("inspect", f"{name}.txt"), ("inspect", "."), ("diagnose", "."), ("diagnose", f"{name}.no"))
    for command in (*runs, ("diagnose", "gpu.csv", "--name", name)):
        for form in (
            ("text", "json", "md", "junit", "gitlab", "sarif") if command[0] == "diagnose" else ("text", "json")
        ):
            called(monkeypatch, *command, "--format", form)
            held = capsys.readouterr()
            assert held.out + held.err and not obeyed(held.out) and not obeyed(held.err), (command, form)
            if form == "json" and held.out:
                assert name in json.dumps(json.loads(held.out))


def test_ordinary_names_stay_as_they_are() -> None:
    for name in ("C::std::vector", "a: b", "## run 1", "x::y", "lr=1e-3 [fold #2]"):
        assert safe(name) == name and inert_lines(f"run {name}") == f"run {name}"
    assert inline("me@example.org, a@b") == "me@example.org, a@b"


@pytest.mark.parametrize(
    "name", ["@everyone", "x @org/team y", "https://e.example/x", "HTTP://e.example", "www.e.example"]
)
def test_a_name_neither_links_nor_calls_in_markdown(name: str) -> None:
    from markdown_it import MarkdownIt

    html = MarkdownIt().render(inline(name))
    assert not re.search(r"(https?|ftp)://|www\.|(^|\W)@\w", html, re.IGNORECASE)
    assert html.replace("\u200b", "") == f"<p>{name}</p>\n"


@pytest.mark.parametrize("encoding", ["cp1252", "cp437", "gbk", "shift_jis", "latin-1", "ascii", "utf-8"])
def test_output_of_any_encoding(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", out)
    write_any_text()
    document = {"mark": "✓ 1 → 2 é \U0001f600 \udcff", "text": "ü"}
    print(json.dumps(document, ensure_ascii=False), file=out, flush=True)
    data = out.detach().getvalue()  # type: ignore[attr-defined]
    held = json.loads(data.decode(encoding))
    assert held["text"] == "ü" and held["mark"].endswith("\U0001f600 \udcff")


@pytest.mark.parametrize("buffered", [True, False])
@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_what_nobody_reads_any_more_is_lost_in_silence(
    name: str, buffered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after ``| head -1``: the command goes on to its exit code; what comes before is read."""
    read, write = os.pipe()
    buffer = open(write, "wb", buffering=-1 if buffered else 0)  # noqa: PTH123, SIM115 - as Python makes them
    stream = io.TextIOWrapper(buffer, "utf-8", write_through=not buffered)
    for one in (name, f"__{name}__"):
        monkeypatch.setattr(sys, one, stream)
    write_any_text()
    print("one", file=getattr(sys, name), flush=True)
    assert os.read(read, 9).split() == [b"one"]
    os.close(read)
    for _ in range(3):
        print("two" * 100_000, file=getattr(sys, name), flush=True)
    stream.close()


@pytest.mark.slow
def test_a_file_name_that_is_not_utf_8(folder: Path, tmp_path: Path) -> None:
    """A report of such a folder is made in test_endings.py."""
    named = Path(os.fsdecode(os.fsencode(tmp_path) + b"/run\xff"))
    try:
        folder.rename(named)
    except OSError:
        pytest.skip("this file system takes UTF-8 only")
    shutil.copy(SAMPLES / "healthy" / "optuna.db", named)  # the trials' tables hold its path
    program = (
        "import sys; from gpudiag.cli import main\n"
        "name, out = sys.argv[1:]\n"
        "commands = [['inspect'], ['diagnose', '--format', 'json', '--plan-out', out + '/plan.json']]\n"
        "commands += [['export', '--to', 'csv', '-o', out + '/tables']]\n"
        "for command in commands:\n"
        "    sys.argv[:] = ['gpudiag', command[0], name, *command[1:]]\n"
        "    try:\n        main()\n"
        "    except SystemExit as stop:\n        assert not stop.code, command\n"
    )
    done = subprocess.run(  # its own process: the encoding of its streams is part of what is asked
        [sys.executable, "-c", program, named, tmp_path],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize(
    "name", ["```x``<h1>I</h1><img src='http://e/t.png'>`", "a`<h1>`b", "`<b>` ``<i>``", "`` <i> ``"]
)
def test_backticks_of_a_name_close_no_code(name: str) -> None:
    from markdown_it import MarkdownIt

    for text in (name, f"`{name}`", f"{name} and `code`"):
        html = MarkdownIt().render(inline(text))
        assert "<h1>" not in html and "<img" not in html and "<b>" not in html and "<i>" not in html, text


def test_no_cell_of_a_table_is_a_formula() -> None:
    table = pd.DataFrame({"name": ["=HYPERLINK(1)", "@SUM(1)", "+1", "-x", "plain", None], "=x": 0.0, "v": [-1.5] * 6})
    made = _inert(table)
    assert list(made) == ["name", "'=x", "v"]
    assert (
        made["name"].tolist()[:5] == ["'=HYPERLINK(1)", "'@SUM(1)", "'+1", "'-x", "plain"] and (made["v"] == -1.5).all()
    )


@pytest.mark.slow
def test_a_full_disk_leaves_the_earlier_report_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gpudiag.report._notebook import runner

    def report(text: str) -> dict[Path, bytes]:
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(text)])
        runner.write_report(notebook, tmp_path, {tmp_path / "diagnosis.json": text.encode()})
        return held()

    def held() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    first = report("run A")
    assert len(first) == 4
    written = Path.write_bytes
    for room in range(4):
        left = iter(range(room))

        def full(path: Path, data: bytes, left: object = left) -> int:
            if next(left, None) is None:  # type: ignore[call-overload]
                raise OSError(28, "No space left on device")
            return written(path, data)

        with monkeypatch.context() as context, pytest.raises(OSError, match="No space"):
            context.setattr(Path, "write_bytes", full)
            report("run B")
        assert held() == first
    assert all(b"run B" in content for content in report("run B").values())
    write_all(tmp_path, [(tmp_path / "report.md", None), (tmp_path / "report.html", "new")])
    assert not (tmp_path / "report.md").exists() and (tmp_path / "report.html").read_text() == "new"


@pytest.mark.slow
def test_a_report_in_the_folder_of_a_comparison_is_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Figure, "draw", lambda self, renderer: None)  # to draw them takes longest
    pair = [SAMPLES / "tiny-batch-laptop"] * 2
    assert called(monkeypatch, "compare", *pair, "-o", tmp_path) in (0, None)
    assert (tmp_path / "comparison.json").is_file()
    assert called(monkeypatch, "report", pair[0], "-o", tmp_path, "--no-notebook") in (0, None)
    assert not (tmp_path / "comparison.json").exists() and (tmp_path / "diagnosis.json").is_file()
    (tmp_path / "diagnosis.json").unlink()
    (tmp_path / "comparison.json").write_text("mine")
    assert called(monkeypatch, "compare", *pair, "-o", tmp_path) == 2
    assert (tmp_path / "comparison.json").read_text() == "mine"
