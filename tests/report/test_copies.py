"""Copies of the shipped notebooks: filled in, otherwise as they were, and never over somebody's work."""

from __future__ import annotations

import ast
from pathlib import Path

import nbformat
import pytest

from gpudiag.errors import ConfigError, InputError, InputNotFound
from gpudiag.report._notebook.copies import copy_all, copy_notebook, kept_about_others, list_notebooks
from gpudiag.report._notebook.locate import find_notebook


def parameters(path: Path) -> dict[str, object]:
    cells = nbformat.read(path, as_version=4).cells
    (cell,) = [cell for cell in cells if "parameters" in cell.metadata.get("tags", [])]
    return {node.targets[0].id: ast.literal_eval(node.value) for node in ast.parse(cell.source).body}


def test_every_notebook_is_listed_with_its_parameters() -> None:
    found = {notebook.name: notebook for notebook in list_notebooks()}
    assert {"run_report", "hpo_report", "gpu_report", "compare_report", "capacity_report", "tour"} <= set(found)
    assert all(notebook.title for notebook in found.values())
    assert "run_path" in found["run_report"].parameters


@pytest.mark.parametrize("value", ["/data/run 1", "C:\\runs\\x", 'it\'s "quoted" {x} # y', "a\nb"])
def test_a_copy_has_the_values_given_and_no_others(value: str, tmp_path: Path) -> None:
    before = parameters(find_notebook("run_report"))
    copied = copy_notebook("run_report", tmp_path, {"run_path": value, "minimal": "true"})
    assert copied == tmp_path / "run_report.ipynb"
    assert parameters(copied) == before | {"run_path": value, "minimal": True}
    nbformat.validate(nbformat.read(copied, as_version=4))


def test_a_copy_never_replaces_a_file(tmp_path: Path) -> None:
    mine = tmp_path / "mine.ipynb"
    copy_notebook("tour", mine)
    changed = mine.read_text(encoding="utf-8") + " "
    mine.write_text(changed, encoding="utf-8")
    with pytest.raises(ConfigError, match="left as it is"):
        copy_notebook("tour", mine)
    assert mine.read_text(encoding="utf-8") == changed


def test_an_unknown_parameter_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no parameter 'run_pth'; did you mean 'run_path'"):
        copy_notebook("run_report", tmp_path, {"run_pth": "x"})


def test_the_laboratory_is_filled_once_and_kept(samples: Path, tmp_path: Path) -> None:
    run = samples / "healthy"
    made = copy_all(tmp_path, run)
    assert {path.stem for path in made} == {notebook.name for notebook in list_notebooks()}
    assert parameters(tmp_path / "tour.ipynb")["run_path"] == str(run.resolve())
    (tmp_path / "tour.ipynb").write_text("mine", encoding="utf-8")
    assert copy_all(tmp_path, run) == copy_all(tmp_path, None) == []
    assert (tmp_path / "tour.ipynb").read_text(encoding="utf-8") == "mine"
    assert not (tmp_path / "data").exists()


@pytest.mark.slow
def test_every_input_that_a_laboratory_names_exists(samples: Path, tmp_path: Path) -> None:
    copy_all(tmp_path / "given", samples / "healthy" / "run.toml")
    copy_all(tmp_path / "simulated", None)
    for path in tmp_path.glob("*/*.ipynb"):
        known = parameters(path)
        inputs = [
            known.get(name) for name in ("run_path", "baseline_path", "experiment_path", "trials") if name in known
        ]
        for name in (*inputs, *known.get("telemetry", [])):
            assert not name or Path(str(name)).exists(), (path, name)
    filled = parameters(tmp_path / "given" / "hpo_report.ipynb")
    assert filled["trials"] == str((samples / "healthy" / "optuna.db").resolve())
    assert (filled["study"], filled["timezone"], filled["diagnosis_json"]) == ("healthy", "Asia/Taipei", "")
    left = Path(str(parameters(tmp_path / "given" / "run_report.ipynb")["diagnosis_json"]))
    assert left.parent.name == "healthy"
    assert left.parent.parent == Path(str(parameters(tmp_path / "given" / "batch_index.ipynb")["reports_path"]))


@pytest.mark.parametrize(
    ("name", "absent"),
    [("gpu.csv", {"hpo_report", "capacity_report", "tour", "ad_hoc"}), ("optuna.db", {"gpu_report"})],
)
def test_a_run_of_one_kind_gets_no_notebook_of_the_other(
    name: str, absent: set[str], samples: Path, tmp_path: Path
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / name).symlink_to(samples / "healthy" / name)
    made = copy_all(tmp_path / "lab", tmp_path / "run")
    assert {notebook.name for notebook in list_notebooks()} - {path.stem for path in made} == absent


@pytest.mark.slow
def test_a_training_by_itself_gets_no_notebook_that_stops_without_trials(samples: Path, tmp_path: Path) -> None:
    made = copy_all(tmp_path, samples / "slow-rank")
    assert not {"hpo_report", "capacity_report", "tour", "ad_hoc"} & {path.stem for path in made}
    assert {"run_report", "gpu_report"} <= {path.stem for path in made}


@pytest.mark.slow
def test_a_batch_without_a_study_does_not_get_that_of_the_sample(samples: Path, tmp_path: Path) -> None:
    copy_all(tmp_path, samples / "idle-second-gpu" / "baseline")
    filled = parameters(tmp_path / "hpo_report.ipynb")
    assert filled["trials"] == "" and filled["artifacts"]


def test_a_laboratory_of_another_run_is_told(samples: Path, tmp_path: Path) -> None:
    first, second = samples / "healthy", samples / "tiny-batch-laptop"
    copy_all(tmp_path, first)
    assert kept_about_others(tmp_path, first) == []
    assert copy_all(tmp_path, second) == []
    assert tmp_path / "run_report.ipynb" in kept_about_others(tmp_path, second)
    assert tmp_path / "gpu_report.ipynb" not in kept_about_others(tmp_path, second)


def test_a_run_whose_name_begins_like_another_is_another(samples: Path, tmp_path: Path) -> None:
    for name in ("run1", "run10"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "gpu.csv").symlink_to(samples / "healthy" / "gpu.csv")
    copy_all(tmp_path / "lab", tmp_path / "run10")
    assert kept_about_others(tmp_path / "lab", tmp_path / "run10") == []
    assert kept_about_others(tmp_path / "lab", tmp_path / "run1")


def test_the_password_of_a_storage_is_not_copied(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text('trials = "postgresql://me:hunter22@127.0.0.1/study"\n', encoding="utf-8")
    for path in copy_all(tmp_path / "lab", tmp_path):
        assert "hunter22" not in path.read_text(encoding="utf-8"), path.name


@pytest.mark.parametrize(("make", "error", "said"), [(False, InputNotFound, "no such"), (True, InputError, "no data")])
def test_a_laboratory_of_nothing_is_refused(make: bool, error: type, said: str, tmp_path: Path) -> None:
    if make:
        (tmp_path / "run").mkdir()
    with pytest.raises(error, match=said):
        copy_all(tmp_path / "lab", tmp_path / "run")
    assert not (tmp_path / "lab").exists()
