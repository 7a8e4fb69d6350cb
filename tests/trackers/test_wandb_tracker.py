"""``gpudiag report --to wandb:ENTITY/PROJECT/RUN_ID``: a stand-in for the client, and W&B's own client against a
stand-in for its server.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from sampleruns import diagnosed
from wandbserver import serving

from gpudiag.errors import ConfigError
from gpudiag.trackers import publisher
from gpudiag.trackers.summary import labels, summary

FILES = [f"gpudiag/{name}" for name in ("diagnosis.json", "report.html", "report.md", "report_files/a.png")]


def expected() -> dict[str, float | str]:
    document = diagnosed("healthy").document
    return {name.removeprefix("gpudiag."): value for name, value in {**summary(document), **labels(document)}.items()}


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """What the client is told, by the calls of ``wandb.apis.public.Run`` that are used."""
    told: dict[str, Any] = {"files": {}}

    class CommError(Exception):
        pass

    def run(path: str) -> Any:
        if path == "e/p/gone":
            raise CommError("http://user:geheim@host: Could not find run\nand more")
        told["run"] = path
        return SimpleNamespace(summary=SimpleNamespace(update=told.update), upload_file=upload_file)

    def upload_file(path: str, root: str = ".") -> None:
        told["files"][Path(path).relative_to(root).as_posix()] = Path(path).read_text()

    made = ModuleType("wandb")
    made.Api = lambda: SimpleNamespace(run=run)  # type: ignore[attr-defined]
    made.errors = SimpleNamespace(Error=CommError)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "wandb", made)
    monkeypatch.delitem(sys.modules, "gpudiag.trackers.wandb", raising=False)
    yield told
    sys.modules.pop("gpudiag.trackers.wandb", None)


def test_summary_and_files_reach_the_run(told: dict[str, Any], report_files: list[Path]) -> None:
    where = publisher("wandb:e/p/r1")(report_files, diagnosed("healthy").document)
    assert where == "wandb:e/p/r1, files in gpudiag/" and told["run"] == "e/p/r1"
    assert told["gpudiag"] == expected()
    assert told["files"] == {name: name.removeprefix("gpudiag/") for name in FILES}


def test_a_run_that_is_not_there_is_one_sentence(told: dict[str, Any], report_files: list[Path]) -> None:
    with pytest.raises(
        ConfigError, match=r"W&B did not take the report for run 'e/p/gone': http://user:\*\*\*@host"
    ) as e:
        publisher("wandb:e/p/gone")(report_files, diagnosed("healthy").document)
    assert "geheim" not in str(e.value) and "more" not in str(e.value)


@pytest.mark.parametrize(
    ("package", "run"), [("wandb", "e/p/r"), ("trackio", "p/r")], ids=lambda one: one.replace("/", "-")
)
def test_a_missing_package_is_said_before_the_work(package: str, run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"gpudiag.trackers.{package}", raising=False)
    with pytest.raises(ConfigError, match=rf"pip install 'gpudiag\[{package}\]'"):
        publisher(f"{package}:{run}")


@pytest.mark.parametrize("to", ["wandb:p/r", "wandb:e//r", "trackio:p", "trackio:/r"])
def test_an_address_that_names_no_run_is_refused(to: str) -> None:
    with pytest.raises(ConfigError, match=rf"--to takes {to.partition(':')[0]}:[A-Z]+/[A-Z/_]+, but got '{to}'"):
        publisher(to)


@pytest.mark.slow
def test_the_client_of_wandb_itself_writes_that_and_no_more(
    report_files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_API_KEY", "0123456789" * 4)
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    with serving() as (server, address):
        monkeypatch.setenv("WANDB_BASE_URL", address)
        publisher("wandb:e/p/abc123")(report_files, diagnosed("healthy").document)
        with pytest.raises(ConfigError, match="Could not find run"):
            publisher("wandb:e/p/gone")(report_files, diagnosed("healthy").document)
    assert server.summary == {"loss": 0.1, "gpudiag": expected()}  # nothing is left of the report before
    assert server.files == {name: name.removeprefix("gpudiag/").encode() for name in FILES}
    assert set(server.mutations) == {"UpsertBucket", "CreateRunFiles"}
