"""``gpudiag compare`` and ``gpudiag plans`` as a person meets them."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import nbformat
import pytest
from matplotlib.figure import Figure


@pytest.fixture
def starved(samples: Path) -> tuple[Path, Path]:
    folder = samples / "starved-input-pipeline"
    return folder / "before", folder / "after"


@pytest.mark.slow
def test_text_says_verdict_gate_and_numbers(gpudiag, starved) -> None:
    code, out, _ = gpudiag("compare", *starved, "--all")
    assert code == 0
    assert "INVALID: starved-input-pipeline after cannot be compared" in out
    assert "1  ■ fail     Same unit and definition" in out and "3  ✓ pass" in out
    assert re.search("dataloader, params +batch_size +5,632 +8,192", out)
    assert "\x1b" not in out and "nan" not in out.split()


@pytest.mark.slow
def test_one_screen_has_the_answer_and_ratios_only_where_they_are_results(gpudiag, starved, samples: Path) -> None:
    code, out, _ = gpudiag("compare", *starved)
    assert code == 0 and len(out.splitlines()) < 30
    assert "INVALID: starved-input-pipeline after cannot be compared" in out and "What to do next" in out
    assert "6 of 8 checks of the gate passed" in out and "--all" in out and "→" not in out
    valid = gpudiag("compare", samples / "real-h100" / "one-worker", samples / "real-h100" / "four-workers")[1]
    assert "22.1 s → 7.84 s, 0.35 (0.21–0.61)" in valid and valid.count("→") == 1


@pytest.mark.slow
def test_json_and_exit_codes(gpudiag, starved) -> None:
    code, out, _ = gpudiag("compare", *starved, "--format", "json", "--fail-on", "invalid")
    document = json.loads(out)
    assert code == 1 and document["schema"] == "gpudiag.comparison/1" and document["verdict"] == "invalid"


@pytest.mark.slow
def test_several_experiments(gpudiag, starved) -> None:
    code, out, _ = gpudiag("compare", *starved, starved[0], "--format", "summary", "--fail-on", "regression")
    assert code == 0 and out.startswith("Baseline: starved-input-pipeline before")
    assert out.count("| INVALID |") == 2


def _p_values(folder: Path) -> dict[str, tuple[str, str]]:
    """p and adjusted p by quantity as the Markdown of the report prints them."""
    text = (folder / "report.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.+?) \| .+? \| ([\d.e–< -]+) \| ([\d.e–< -]+) \|$", text.replace("\\", ""), re.MULTILINE)
    return {title: (p, adjusted) for title, p, adjusted in rows}


@pytest.mark.slow
def test_reports_of_several_experiments_say_what_their_text_says(gpudiag, samples: Path, tmp_path: Path) -> None:
    """One computation: shared control of chance findings, and names that tell the experiments apart; the notebook of a
    report makes it again.
    """
    runs = samples / "idle-second-gpu"
    given = (runs / "baseline", runs / "experiment", runs / "baseline")
    code, out, err = gpudiag("compare", *given, "-o", tmp_path / "out", "--format", "json")
    documents = json.loads(out)["comparisons"]
    names = [document["experiment"]["name"] for document in documents]
    assert code == 0 and names == ["idle-second-gpu experiment", "idle-second-gpu baseline (experiment 2)"]
    folders = [
        tmp_path / "out" / name for name in ("idle-second-gpu-experiment", "idle-second-gpu-baseline-experiment-2")
    ]
    alone = json.loads(gpudiag("compare", *given[:2], "--format", "json")[1])
    differ = 0
    for folder, document in zip(folders, documents, strict=True):
        assert f"  {folder / 'report.ipynb'}" in err and f"  {folder / 'comparison.json'}" in err
        assert json.loads((folder / "comparison.json").read_text(encoding="utf-8")) == document
        assert document["experiment"]["name"] in (folder / "report.html").read_text(encoding="utf-8")
        shown = _p_values(folder)
        for one, lone in zip(document["quantities"], alone["quantities"], strict=True):
            if one["p_adjusted"] is not None:
                assert shown[one["title"]] == (_shown(one["p"]), _shown(one["p_adjusted"]))
                differ += one["p_adjusted"] != lone["p_adjusted"]
    assert differ  # alone, fewer tests share the control
    notebook = nbformat.read(folders[1] / "report.ipynb", as_version=4)
    nbformat.validate(notebook)
    held: dict[str, object] = {}
    exec("\n".join(cell.source for cell in notebook.cells[:5] if cell.cell_type == "code"), held)
    assert held["comparison"].to_dict() == documents[1]


def _shown(value: float) -> str:
    if value < 1e-3:
        return "< 0.001"
    return f"{value:.2f}" if value >= 0.01 else f"{value:.1g}"


@pytest.mark.slow
def test_folders_of_experiments_never_collide(
    gpudiag, samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Figure, "draw", lambda self, renderer: None)  # to draw them takes longest
    run = samples / "tiny-batch-laptop"
    paths = []
    for place, name in enumerate(("b/1", "b 1", "B-1")):
        folder = tmp_path / f"run{place}"
        shutil.copytree(run, folder)
        text = (folder / "run.toml").read_text(encoding="utf-8")
        (folder / "run.toml").write_text(re.sub(r"(?m)^name = .*$", f'name = "{name}"', text), encoding="utf-8")
        paths.append(folder)
    code, _, err = gpudiag("compare", run, *paths, "-o", tmp_path / "out", "--format", "summary")
    assert code == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["B-1-3", "b-1", "b-1-2"]
    assert len(set(err.split("\n"))) == err.count("\n") + 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nowhere", "elsewhere"), "nowhere: no such file or folder"),
        (("{a}", "{b}", "--format", "xml"), "--format must be one of text, json, md, summary"),
        (("{a}", "{b}", "--fail-on", "slower"), "--fail-on must be one of regression, invalid, never"),
        (("{a}", "{b}", "--plan", "no.json"), "no.json: no such file; expected a plan.json"),
    ],
)
def test_bad_input_is_one_sentence(gpudiag, starved, arguments: tuple[str, ...], words: str) -> None:
    code, out, err = gpudiag("compare", *(a.format(a=starved[0], b=starved[1]) for a in arguments))
    assert code == 2 and out == "" and words in err and err.count("\n") == 1


def test_plans_of_an_empty_folder(gpudiag, tmp_path: Path) -> None:
    code, _, err = gpudiag("plans", tmp_path)
    assert code == 2 and "holds no plan" in err


@pytest.mark.slow
def test_reports_and_plans(gpudiag, starved, tmp_path: Path) -> None:
    from gpudiag.diagnosis import diagnose
    from gpudiag.load import load_run

    plan = diagnose(load_run(starved[0])).save_plan(tmp_path / "plan.json")
    code, _, err = gpudiag("compare", *starved, "--plan", plan, "-o", tmp_path / "out", "--format", "summary")
    assert code == 0 and "comparison.json" in err
    assert not (tmp_path / "out" / "diagnosis.json").exists()
    report = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "INVALID" in report and "loader-workers" in report
    code, out, _ = gpudiag("plans", tmp_path)
    assert code == 0 and out.startswith("1 comparison with a plan; 0 plans not compared yet.")
    code, out, _ = gpudiag("plans", tmp_path, "--format", "json")
    assert json.loads(out)["overall"]["cannot_tell"] == 4
