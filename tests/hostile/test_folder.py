"""A folder as people have them: one bad file in it costs that file, and nothing else."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import gpudiag as gd
from gpudiag._load.folder import walk
from gpudiag._load.inspection import inspect
from gpudiag.errors import InputError, UnknownInput
from gpudiag.faults import strict
from gpudiag.readers.artifacts import lightning_csv, task_csv

SAMPLES = Path(__file__).resolve().parent.parent.parent / "data" / "samples"
ROWS = 8000


def samples(folder: Path) -> int:
    return len(gd.load_run(folder, timezone="UTC").gpu)


def unread(folder: Path) -> dict[str, str]:
    return {Path(one.path).name: one.error for one in inspect([folder]) if one.error}


@pytest.mark.slow
def test_files_that_cannot_be_opened_are_said_and_the_others_read(folder: Path) -> None:
    alone = samples(folder)
    (folder / "damaged.gz").write_bytes(b"\x1f\x8bxx")
    (folder / "nothing.gz").write_bytes(gzip.compress(b""))
    assert samples(folder) == alone == 90
    errors = unread(folder)
    assert all("is empty or damaged" in errors[name] for name in ("damaged.gz", "nothing.gz"))
    (found,) = [v for v in gd.diagnose(gd.load_run(folder, timezone="UTC")).findings if v.rule == "input-unread"]
    assert found.evidence["n_unread"] == 2


NOBODY = 65534


@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="users of POSIX")
def test_files_that_nobody_may_read(folder: Path) -> None:
    assert samples(folder) == 90 and not unread(folder)  # what this imports, nobody may not read
    with TemporaryDirectory() as open_to_all:
        run = Path(shutil.copytree(folder, Path(open_to_all) / "run"))
        for path in (run.parent, run):
            path.chmod(0o755)
        (run / "gpu.csv").chmod(0o644)
        (run / "closed").mkdir(mode=0)
        (run / "7").mkdir(mode=0)  # as a job of Hydra is called
        (run / "mine.csv").write_text("a")
        (run / "mine.csv").chmod(0)
        with without_root():
            read, errors = samples(run), unread(run)
        for name in ("closed", "7"):
            (run / name).chmod(0o700)
    assert read == 90 and set(errors) == {"closed", "7", "mine.csv"}
    assert all("Permission denied" in error for error in errors.values())


NOBODY = 65534


@contextmanager
def without_root() -> Iterator[None]:
    """Without the rights of root, who may read everything."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_folder_that_cannot_be_listed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "closed").mkdir()
    listed = Path.iterdir

    def refuse(path: Path) -> object:
        if path.name == "closed":
            raise PermissionError(13, "Permission denied")
        return listed(path)

    monkeypatch.setattr(Path, "iterdir", refuse)
    assert samples(folder) == 90 and "Permission denied" in unread(folder)["closed"]


def test_links_that_lead_in_a_circle(folder: Path) -> None:
    alone = samples(folder)
    for name, target in {"a": "b", "b": "a", "self": ".", "above": "..", "run": "../run"}.items():
        (folder / name).symlink_to(target)
    run = gd.load_run(folder, timezone="UTC")
    assert len(run.gpu) == alone and len(run.info.inputs) == 1


def test_nothing_is_met_twice_whatever_links_lead_to_it(tmp_path: Path) -> None:
    outside, top = tmp_path / "X", tmp_path / "L" / "in"
    for made in (outside, top):
        made.mkdir(parents=True)
    shutil.copy(SAMPLES / "tiny-batch-laptop" / "gpu.csv", outside)
    for link, target in {"a": "../../X", "b": "../../X", "c.csv": "a/gpu.csv"}.items():
        (top / link).symlink_to(target)
    (outside / "loop").symlink_to(outside)
    (outside / "up").symlink_to(top)
    assert len(list(walk(top))) == 1 and samples(top) == 90


@pytest.mark.parametrize("store", [".store", ".git/annex/objects"])
def test_a_link_to_a_hidden_file_is_read(folder: Path, store: str) -> None:
    hidden = folder / store
    hidden.mkdir(parents=True)
    (folder / "gpu.csv").rename(hidden / "abc")
    (folder / "gpu.csv").symlink_to(f"{store}/abc")
    (folder / "again.csv").symlink_to("gpu.csv")
    assert [source.path.name for source, _ in walk(folder)] == ["again.csv"] and samples(folder) == 90
    (hidden / "abc").unlink()  # as git-annex leaves it where the content was not fetched
    with pytest.raises(UnknownInput) as caught:
        gd.load_run(folder)
    said = str(caught.value)
    assert "links whose target is missing (again.csv, gpu.csv)" in said and "gpudiag left" not in said
    assert f"hidden files and folders ({store.split('/')[0]})" in said


def test_an_empty_folder_is_called_empty(tmp_path: Path) -> None:
    with pytest.raises(UnknownInput, match="the folder is empty"):
        gd.load_run(tmp_path)
    (tmp_path / "sub").mkdir()
    with pytest.raises(UnknownInput, match="it holds no file"):
        gd.load_run(tmp_path)


def test_a_reader_that_fails_costs_its_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "tasks.csv").write_text("task,status,start,end\na,ok,1761645600,1761645601\n")
    reader = task_csv.READER

    def broken(*given: object) -> None:
        raise RuntimeError("planted")

    monkeypatch.setitem(reader.__dict__, "read", broken)
    with strict(False):
        assert samples(folder) == 90
        assert (
            "failed with RuntimeError" in unread(folder)["tasks.csv"] and "planted" not in unread(folder)["tasks.csv"]
        )


def test_a_line_with_a_cell_of_more_than_128_kb_is_no_input(folder: Path) -> None:
    (folder / "words.txt").write_text("a" * 200_000 + ",number,state\n" + "b" * 10)
    assert samples(folder) == 90 and "no reader recognizes it" in unread(folder)["words.txt"]


@pytest.mark.slow
@pytest.mark.parametrize("rows", [20, ROWS])
def test_a_stray_quote_costs_its_own_line(folder: Path, rows: int) -> None:
    row = "c,ok,1761645600,1761645601\n"
    text = 'task,status,start,end\na,ok,1761645600,1761645601\nb,"ok,1761645600,1761645602\n' + row * rows
    (folder / "tasks.csv").write_text(text)
    run = gd.load_run(folder / "tasks.csv", timezone="UTC")
    assert len(run.trials) == rows + 1
    assert [(p.count, p.line, p.lost) for p in run.info.inputs[0].problems] == [(1, 3, True)]


def test_a_stray_quote_in_the_header_of_trials(tmp_path: Path) -> None:
    (tmp_path / "trials.csv").write_text(
        'number,value,state,"datetime_start\n' + "0,0.5,COMPLETE,2026-03-01 10:00:00\n" * 9
    )
    with pytest.raises(InputError, match="expected the column names in line 1, but a quote"):
        gd.load_run(tmp_path / "trials.csv", timezone="UTC")


def test_a_stray_quote_in_metrics(tmp_path: Path) -> None:
    rows = [f"0.{step:03},{step // 10},{step}" for step in range(900)]
    rows[5] = '"' + rows[5]
    (tmp_path / "metrics.csv").write_text("train_loss,epoch,step\n" + "\n".join(rows) + "\n")
    run = gd.load_run(tmp_path / "metrics.csv", timezone="UTC")
    assert len(run.reports) == 899
    assert run.info.inputs[0].reader == lightning_csv.NAME


def test_cells_of_several_lines_are_kept(tmp_path: Path) -> None:
    text = 'task,status,start,end,error\na,failed,1761645600,1761645601,"one\ntwo, ""three""\n"\n'
    text += 'b,ok,1761645600,1761645601,5" disk\n'
    (tmp_path / "tasks.csv").write_text(text)
    run = gd.load_run(tmp_path / "tasks.csv", timezone="UTC")
    assert list(run.trials["state"]) == ["FAIL", "COMPLETE"] and not run.info.inputs[0].problems


@pytest.mark.slow
@pytest.mark.parametrize("half", ["\ud83d", "\udcff", "\ud83d\ud83d"])
def test_half_a_character_in_json(tmp_path: Path, half: str) -> None:
    trials = [
        {"number": n, "value": 0.5, "state": "COMPLETE", "params": {f"x{half}": half, "y": "\U0001f600"},
         "user_attrs": {half: half}, "datetime_start": f"2026-03-01 10:0{n}:00",
         "datetime_complete": f"2026-03-01 10:0{n}:30"}
        for n in range(4)
    ]  # fmt: skip
    (tmp_path / "trials.json").write_text(json.dumps(trials))
    (tmp_path / "tasks.jsonl").write_text(
        "".join(
            json.dumps(
                {"task": half, "status": "ok", "start": 1772359200 + n, "end": 1772359230 + n, "params": {half: half}}
            )
            + "\n"
            for n in range(4)
        )
    )
    operations = [
        {"op_code": 0, "worker_id": "w", "study_name": f"s{half}", "directions": [1]},
        {"op_code": 4, "worker_id": "w", "study_id": 0, "datetime_start": "2026-03-01T10:00:00.000000"},
        {"op_code": 5, "worker_id": "w", "trial_id": 0, "param_name": f"x{half}", "param_value_internal": 0,
         "distribution": json.dumps({"name": "CategoricalDistribution", "attributes": {"choices": [half, "b"]}})},
        {"op_code": 8, "worker_id": "w", "trial_id": 0, "user_attr": {half: half}},
        {"op_code": 6, "worker_id": "w", "trial_id": 0, "state": 1, "values": [0.5],
         "datetime_complete": "2026-03-01T10:01:00.000000"},
    ]  # fmt: skip
    (tmp_path / "journal.log").write_text("".join(json.dumps(one) + "\n" for one in operations))
    for name, count in {"trials.json": 4, "tasks.jsonl": 4, "journal.log": 1}.items():
        run = gd.load_run(tmp_path / name, timezone="UTC")
        assert len(run.trials) == count, name
        gd.diagnose(run).to_json().encode()


def bomb(levels: int = 9) -> str:
    """A few hundred bytes that stand for 9 to the power of ``levels`` values."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    return "\n".join(lines + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, levels)]) + "\n"


def test_yaml_whose_references_multiply(tmp_path: Path) -> None:
    (tmp_path / "version_0").mkdir()
    (tmp_path / "version_0" / "metrics.csv").write_text("loss,epoch,step\n0.5,0,1\n0.4,0,2\n")
    (tmp_path / "version_0" / "hparams.yaml").write_text(bomb())
    run = gd.load_run(tmp_path, timezone="UTC")
    assert len(run.trials) == 1 and any("no plain YAML" in p.kind for one in run.info.inputs for p in one.problems)
    for name in ("0", "1"):
        hydra = tmp_path / "multirun" / name / ".hydra"
        hydra.mkdir(parents=True)
        (hydra / "overrides.yaml").write_text("- lr=0.1\n- &a [b]\n- *a\n" if name == "0" else bomb())
    (tmp_path / "multirun" / "multirun.yaml").write_text("hydra: {job: {name: main}}\n")
    text = "- number: 0\n  state: COMPLETE\n  value: 1\n  datetime_start: '2026-03-01 10:00:00'\n  params:\n"
    (tmp_path / "trials.yaml").write_text(text + "".join(f"    {line}\n" for line in bomb().splitlines()))
    assert len(list(inspect([tmp_path]))) >= 3
