"""Many runs in one go: each on its own, one bad run stops no other, and the exit code tells of the worst."""

from __future__ import annotations

import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest
from commandline import called
from sampleruns import SAMPLES, diagnosed

from gpudiag.errors import ConfigError, InputError
from gpudiag.interpreter import Children
from gpudiag.report import batch
from gpudiag.report.batch import Job, left_out, plan_jobs, report_all
from gpudiag.report.index import Index, IndexEntry, failed, read_row


def test_a_folder_of_runs_is_all_of_them_and_names_stay_apart(samples: Path, tmp_path: Path) -> None:
    jobs = plan_jobs([samples / "healthy", samples / "idle-second-gpu", samples / "hpo-aggressive-pruning/run.toml"])
    assert [job.folder for job in jobs] == ["healthy", "baseline", "experiment", "hpo-aggressive-pruning"]
    twice = plan_jobs([samples / "healthy", samples / "healthy"])
    assert len({job.folder for job in twice}) == 2
    for name in ("a", "b"):
        (tmp_path / name / "run").mkdir(parents=True)
        (tmp_path / name / "run" / "run.toml").write_text("", encoding="utf-8")
    assert [job.folder for job in plan_jobs([tmp_path])] == ["a-run", "b-run"]


@pytest.mark.slow
def test_a_run_is_told_by_its_data_where_it_has_no_run_toml(samples: Path, tmp_path: Path) -> None:
    log = samples / "healthy" / "gpu.csv"
    shutil.copytree(samples / "healthy", tmp_path / "b" / "listed")
    for folder in ("a", "b/bare", "Twin/x", "twin/x"):
        (tmp_path / folder).mkdir(parents=True)
        shutil.copy(log, tmp_path / folder)
    (tmp_path / "b" / "junk").mkdir()
    (tmp_path / "b" / "junk" / "noise.bin").write_bytes(bytes(range(256)))
    jobs = plan_jobs([tmp_path])
    assert [str(job.run.relative_to(tmp_path)) for job in jobs] == ["Twin/x", "a", "b/bare", "b/listed", "twin/x"]
    assert len({job.folder.casefold() for job in jobs}) == 5
    assert [path.name for path in left_out(tmp_path)] == ["junk"]
    # Data of its own beside a run below: the folder is the run, and it alone.
    shutil.copy(log, tmp_path / "b")
    assert plan_jobs([tmp_path / "b"]) == [Job(tmp_path / "b", "b")]
    assert left_out(tmp_path / "b") == []
    assert plan_jobs([tmp_path / "a"]) == [Job(tmp_path / "a", "a")]


def test_folders_of_reports_never_meet(tmp_path: Path) -> None:
    runs = [tmp_path / name for name in ("q/x", "s/q/x", "r/q-x-2", "Q/X")]
    for run in runs:
        run.mkdir(parents=True, exist_ok=True)
        (run / "run.toml").touch()
    folders = [job.folder.casefold() for job in plan_jobs(runs)]
    assert len(set(folders)) == len(runs)


def test_a_document_of_another_tool_is_not_ours(tmp_path: Path) -> None:
    (tmp_path / "diagnosis.json").write_text("{}", encoding="utf-8")
    with pytest.raises(InputError, match=r"holds no diagnosis\.json"):
        Index.read(tmp_path)


def test_no_run_is_no_job_and_no_worker_is_an_error(tmp_path: Path) -> None:
    assert plan_jobs([]) == []
    with pytest.raises(ConfigError, match="--jobs must be 1 or more"):
        report_all([], tmp_path, workers=0)


@pytest.mark.slow
def test_one_process_runs_one_command_after_another() -> None:
    with Children(batch.CHILD) as children:
        assert children.run(["--version"]) == (0, "")
        (first,) = children._idle
        code, said = children.run(["report", "nowhere"])
        assert code == 2 and said.startswith("gpudiag: nowhere: no such file or folder") and said.count("\n") == 1
        assert children.run(["--version"]) == (0, "") and children._idle == [first]
        first.process.kill()
        assert children.run(["--version"]) == (-signal.SIGKILL, "")
        assert children.run(["--version"]) == (0, "") and children._idle != [first]
        (second,) = children._idle
    assert second.process.returncode == 0, "it ends by itself where its stdin does"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows ends a process without telling it")
def test_a_process_that_is_ended_between_two_commands_leaves_no_kernel(
    samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (temporary := tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    report = ["report", str(samples / "tiny-batch-laptop"), "-o", str(tmp_path / "out"), "-p", "minimal=true"]
    with Children(batch.CHILD) as children:
        assert children.run(report)[0] == 0
        (child,) = children._idle
        kernels = psutil.Process(child.process.pid).children()
        assert kernels and list(temporary.glob("gpudiag-*/kernel.json"))
        child.process.terminate()
        assert child.process.wait(timeout=60) == 128 + signal.SIGTERM
    assert not any(psutil.pid_exists(kernel.pid) for kernel in kernels)
    assert not list(temporary.glob("gpudiag-*"))


@pytest.mark.slow
def test_one_bad_run_stops_no_other(samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = tmp_path / "bad"
    bad.mkdir()
    (bad / "run.toml").write_text("nonsense = 1\n", encoding="utf-8")
    shutil.copytree(samples / "tiny-batch-laptop", tmp_path / "good")
    said: list[IndexEntry] = []
    jobs = plan_jobs([tmp_path])
    options = ["--no-notebook", "--parameter=minimal=true"]
    index = report_all(jobs, tmp_path / "out", options, workers=2, progress=said.append)
    assert [(row.folder, row.level) for row in index.rows] == [("bad", "failed"), ("good", "note")]
    assert "nonsense" in index.rows[0].error and "\n" not in index.rows[0].error
    assert sorted(row.folder for row in said) == ["bad", "good"]
    assert (tmp_path / "out/good/report.html").is_file() and (tmp_path / "out/index.md").is_file()
    assert Index.read(tmp_path / "out").rows == (index.rows[1],)
    # What an earlier batch left must not pass for the report of a run that fails now.
    monkeypatch.setattr(Children, "run", lambda children, arguments: (2, "gpudiag: run.toml: nonsense"))
    again = report_all([Job(tmp_path / "good", "good")], tmp_path / "out")
    assert again.level == "failed"


def _diagnosed_here(children: object, job: Job, output: Path, options: Sequence[str]) -> IndexEntry:
    """What the process of one report leaves for the index."""
    folder = output / job.folder
    if job.folder == "bad":
        return failed(str(job.run), job.folder, "it cannot be read")
    diagnosed(str(job.run.relative_to(SAMPLES))).save(folder / "diagnosis.json")
    return read_row(folder, job.folder)


@pytest.mark.parametrize(("runs", "level", "code"), [(("healthy", "tiny-batch-laptop"), "warning", 0),
                                                    (("healthy", "idle-second-gpu/baseline"), "warning", 1),
                                                    (("healthy", "idle-second-gpu/baseline"), "never", 0),
                                                    (("healthy", "bad"), "never", 2),
                                                    (("healthy", "nowhere"), "never", 2)])  # fmt: skip
def test_the_exit_code_tells_of_the_worst(
    runs: tuple[str, ...], level: str, code: int, samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The processes themselves run in the test above, and from the command line in test_shadow_modules.py."""
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "run.toml").touch()
    monkeypatch.setattr(batch, "_report", _diagnosed_here)
    paths = [tmp_path / name if name == "bad" else samples / name for name in runs]
    arguments = ["report", *paths, "-o", tmp_path / "out", "--jobs", "2", "--fail-on", level, "-p", "minimal=true"]
    assert called(monkeypatch, *arguments) == code
