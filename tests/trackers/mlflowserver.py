"""A stand-in for MLflow as a tracked run is asked of it: names and shapes are those of MLflow 3.17."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

OURS = ("gpudiag._load.tracked.mlflow", "gpudiag._load.tracked.mlflow_client", "gpudiag.trackers.mlflow")
"""They keep the client that they were imported with."""


class MlflowError(Exception):
    """In place of ``mlflow.exceptions.MlflowException``."""


class Page(list[Any]):
    """In place of ``mlflow.store.entities.PagedList``."""

    token: str | None = None


class Server:
    """Runs by their ids, which tests fill; every call reads."""

    def __init__(self) -> None:
        self.runs: dict[str, Any] = {}
        self.histories: dict[tuple[str, str], list[Any]] = {}
        self.files: dict[str, bytes] = {}

    def add(
        self,
        run: str,
        start_s: float,
        end_s: float | None,
        metrics: dict[str, list[tuple[float, float, int]]],
        status: str = "FINISHED",
        **more: dict[str, str],
    ) -> None:
        """A run; each metric is a list of (seconds since 1970, value, step)."""
        for name, points in metrics.items():
            made = [SimpleNamespace(timestamp=round(at * 1000), value=value, step=step) for at, value, step in points]
            self.histories[run, name] = made
        info = SimpleNamespace(
            run_id=run,
            run_name=f"name of {run}",
            experiment_id="7",
            status=status,
            start_time=round(start_s * 1000),
            end_time=None if end_s is None else round(end_s * 1000),
        )
        latest = {name: points[-1][1] for name, points in metrics.items()}
        data = SimpleNamespace(metrics=latest, params=more.get("params", {}), tags=more.get("tags", {}))
        self.runs[run] = SimpleNamespace(info=info, data=data)

    def get_run(self, run_id: str) -> Any:
        if run_id not in self.runs:
            raise MlflowError(f"http://user:geheim@host/api: no run {run_id}\nand more")
        return self.runs[run_id]

    def get_experiment(self, experiment_id: str) -> Any:
        return SimpleNamespace(name=f"experiment {experiment_id}")

    def search_runs(
        self, experiment_ids: list[str], filter_string: str, order_by: list[str], page_token: str | None
    ) -> Page:
        """One run a page, as an impatient server would."""
        parent = filter_string.partition(" = ")[2].strip("'")
        held = [run for run in self.runs.values() if run.data.tags.get("mlflow.parentRunId") == parent]
        at = int(page_token or 0)
        page = Page(held[at : at + 1])
        page.token = str(at + 1) if at + 1 < len(held) else None
        return page

    def get_metric_history(self, run_id: str, key: str) -> list[Any]:
        return self.histories[run_id, key]

    def list_artifacts(self, run_id: str, path: str | None = None) -> list[Any]:
        under = f"{path}/" if path else ""
        below = {name.removeprefix(under).partition("/")[::2]: name for name in self.files if name.startswith(under)}
        folders = {under + first for first, rest in below if rest}
        files = [
            SimpleNamespace(path=under + one, is_dir=False, file_size=len(self.files[under + one]))
            for one, rest in below
            if not rest
        ]
        return files + [SimpleNamespace(path=one, is_dir=True, file_size=None) for one in sorted(folders)]

    def download_artifacts(self, run_id: str, path: str, dst_path: str) -> str:
        into = Path(dst_path, path)
        into.parent.mkdir(parents=True, exist_ok=True)
        into.write_bytes(self.files[path])
        return str(into)


@contextmanager
def mlflow_in_place(patch: pytest.MonkeyPatch, client: Any) -> Iterator[ModuleType]:
    """Module ``mlflow``, whose ``MlflowClient()`` is this client."""
    made, entities, errors = (ModuleType(name) for name in ("mlflow", "mlflow.entities", "mlflow.exceptions"))
    made.MlflowClient = lambda: client  # type: ignore[attr-defined]
    made.tracking = SimpleNamespace(is_tracking_uri_set=lambda: True)  # type: ignore[attr-defined]
    made.get_tracking_uri = lambda: "http://user:geheim@host"  # type: ignore[attr-defined]
    entities.Metric = lambda key, value, timestamp, step: SimpleNamespace(key=key, value=value)  # type: ignore[attr-defined]
    entities.RunTag = lambda key, value: SimpleNamespace(key=key, value=value)  # type: ignore[attr-defined]
    errors.MlflowException = MlflowError  # type: ignore[attr-defined]
    for module in (made, entities, errors):
        patch.setitem(sys.modules, module.__name__, module)
    for name in OURS:
        patch.delitem(sys.modules, name, raising=False)
    yield made
    for name in OURS:
        sys.modules.pop(name, None)
