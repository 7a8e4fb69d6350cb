"""Every study of the corpus: our tables give the numbers of REFERENCE.jsonl, and Optuna's own, value by value."""

from __future__ import annotations

import json
import math
import shutil
import sqlite3
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gpudiag import timezones
from gpudiag.readers._io.source import Source
from gpudiag.readers.identify import identify
from gpudiag.readers.trials import Trials, read_trials
from gpudiag.schema import REPORTS, STUDIES, TRIALS, conform

pytestmark = pytest.mark.corpus


@pytest.fixture(scope="module")
def optuna_corpus(corpus: Path) -> Path:
    return corpus / "optuna"


@cache
def read(path: Path) -> Trials:
    """Each file once: the tests look at the tables and change none."""
    return read_trials(path, timezone="UTC")


def studies_of(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    for line in (folder / "REFERENCE.jsonl").read_text().splitlines():
        reference = json.loads(line)
        kind = "journal" if reference["file"].endswith(".log") else "sqlite"
        yield folder / kind / reference["file"], reference


def most_at_once(start: pd.Series, end: pd.Series) -> int | None:
    """Largest number of intervals open at one instant; an end frees its place before a start takes one."""
    if not len(start):
        return None
    edges = [(timestamp, 1) for timestamp in start] + [(timestamp, -1) for timestamp in end]
    level = most = 0
    for _, step in sorted(edges):
        level += step
        most = max(most, level)
    return most


def measured(trials: pd.DataFrame, reports: pd.DataFrame, directions: str) -> dict[str, Any]:
    """What REFERENCE.jsonl states of a study, recomputed from our tables."""
    count = trials["state"].value_counts().to_dict()
    done = trials[trials["start"].notna() & trials["end"].notna()]
    seconds = (done["end"] - done["start"]).dt.total_seconds()
    pruned = count.get("PRUNED", 0)
    decided = pruned + count.get("COMPLETE", 0)
    finished = decided + count.get("FAIL", 0)
    out: dict[str, Any] = {
        "directions": directions.split(","),
        "states": count,
        "prune_rate": {
            "of_complete+pruned": pruned / decided if decided else None,
            "of_finished": pruned / finished if finished else None,
            "of_all": pruned / len(trials) if len(trials) else None,
        },
        "n_intermediate": len(reports),
        "running_no_complete": int(((trials["state"] == "RUNNING") & trials["end"].isna()).sum()),
        "waiting": count.get("WAITING", 0),
    }
    if len(done):
        first, last = done["start"].min(), done["end"].max()
        events = max(trials["start"].max(), last)
        opened = trials[trials["start"].notna()]
        out |= {
            "first_start": first,
            "last_complete": last,
            "max_concurrent_finished": most_at_once(done["start"], done["end"]),
            "max_concurrent_open_to_last_event": most_at_once(opened["start"], opened["end"].fillna(events)),
            "busy_s": seconds.sum(),
            "wall_s": (last - first).total_seconds(),
            "mean_parallelism": seconds.sum() / (last - first).total_seconds(),
            "duration_by_state": {
                state: {
                    "n": len(group),
                    "median_s": group.median(),
                    "mean_s": group.mean(),
                    "max_s": group.max(),
                    "sum_s": group.sum(),
                }
                for state, group in seconds.groupby(done["state"])
            },
        }
    if "," not in directions:
        complete = trials[trials["state"] == "COMPLETE"]
        out["best_value"] = None
        if len(complete):
            best = (complete["value"] if directions == "MINIMIZE" else -complete["value"]).idxmin()
            out |= {"best_value": complete["value"][best], "best_number": complete["trial"][best]}
    return out


def differences(ours: Any, theirs: Any, where: str) -> list[str]:
    """Where two nested results differ; timestamps to the microsecond, numbers to the six decimals of the file."""
    if isinstance(theirs, dict):
        keys = sorted(set(ours) | set(theirs))
        return [d for key in keys for d in differences(ours.get(key), theirs.get(key), f"{where}.{key}")]
    if isinstance(ours, pd.Timestamp):
        same = ours.tz_localize(None) == pd.Timestamp(theirs)
    elif isinstance(theirs, float) and ours is not None:
        same = math.isclose(ours, theirs, rel_tol=1e-12, abs_tol=6e-7)
    else:
        same = ours == theirs
    return [] if same else [f"{where}: {ours!r} is not {theirs!r}"]


@pytest.mark.slow
def test_every_study_gives_the_numbers_that_optuna_gives(optuna_corpus: Path) -> None:
    wrong: list[str] = []
    seen = 0
    for path, reference in studies_of(optuna_corpus):
        out = read(path)
        assert out.studies["study"].tolist() == [study["name"] for study in reference["studies"]], path
        for study, row in zip(reference["studies"], out.studies.itertuples(), strict=True):
            name = study.pop("name")
            trials = out.trials[out.trials["study"] == name]
            reports = out.reports[out.reports["study"] == name]
            wrong += differences(measured(trials, reports, row.directions), study, f"{path.name}:{name}")
            seen += 1
        done = out.trials[out.trials["start"].notna() & out.trials["end"].notna()]
        most = most_at_once(done["start"], done["end"])
        wrong += differences(most, reference["db_max_concurrent_finished"], f"{path.name}: all studies")
    assert wrong == []
    assert seen >= 120


def optuna_frame(path: Path, name: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """trials_dataframe and intermediate values as Optuna gives them; timestamps put back to what the file holds."""
    import optuna
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    journal = path.suffix == ".log"
    storage = JournalStorage(JournalFileBackend(str(path))) if journal else f"sqlite:///{path}"
    study = optuna.load_study(study_name=name, storage=storage)
    frame = study.trials_dataframe()
    steps = [
        (trial.number, step, value)
        for trial in study.get_trials(deepcopy=False)
        for step, value in sorted(trial.intermediate_values.items())
    ]
    for column in ("datetime_start", "datetime_complete"):
        if column in frame:
            timestamps = pd.to_datetime(frame[column]).astype("datetime64[us]")
            here = timestamps.dt.tz_localize(timezones.machine_zone())
            frame[column] = timestamps.dt.tz_localize("UTC") if journal else here.dt.tz_convert("UTC")
    return frame, pd.DataFrame(steps, columns=["trial", "step", "value"])


def our_name(name: str) -> str:
    for prefix in ("params_", "user_attrs_", "system_attrs_"):
        if name.startswith(prefix):
            return prefix[:-1] + "." + name.removeprefix(prefix)
    fixed = {"number": "trial", "datetime_start": "start", "datetime_complete": "end"}
    return fixed.get(name, name.replace("values_", "value_"))


def same_cell(ours: Any, theirs: Any) -> bool:
    if isinstance(theirs, list | dict | tuple):
        return isinstance(ours, str) and json.loads(ours) == json.loads(json.dumps(theirs))
    if pd.isna(theirs) or pd.isna(ours):
        return bool(pd.isna(theirs)) == bool(pd.isna(ours))
    return bool(ours == theirs)


@pytest.mark.slow
def test_every_cell_equals_trials_dataframe(optuna_corpus: Path, tmp_path: Path) -> None:
    """Of every second file: Optuna takes long to make its table."""
    compared = 0
    for path, reference in islice(studies_of(optuna_corpus), 0, None, 2):
        if reference["upgraded"] or not reference["optuna"].startswith("5"):
            continue
        copy = Path(shutil.copyfile(path, tmp_path / path.name.replace(".sqlite3", ".db")))
        out = read(path)
        for name in out.studies["study"]:
            theirs, steps = optuna_frame(copy, name)
            ours = out.trials[out.trials["study"] == name].reset_index(drop=True)
            assert len(ours) == len(theirs), (path.name, name)
            for column in theirs.columns.drop("duration", errors="ignore"):
                cells = ours[our_name(column)].tolist() if our_name(column) in ours else [None] * len(ours)
                bad = [i for i, (a, b) in enumerate(zip(cells, theirs[column], strict=True)) if not same_cell(a, b)]
                assert not bad, (path.name, name, column, bad[:3])
            mine = out.reports.loc[out.reports["study"] == name, ["trial", "step", "value"]].to_numpy()
            np.testing.assert_array_equal(
                mine, steps.to_numpy(dtype=float).reshape(-1, 3), err_msg=f"{path.name} {name}"
            )
            compared += len(ours)
        copy.unlink()
    assert compared > 5_000


def test_exports_equal_the_study_they_were_made_from(optuna_corpus: Path) -> None:
    counts = {"izzak98__LSTM": {"COMPLETE": 97, "FAIL": 2, "RUNNING": 1}, "Mahdi__tcn": {"COMPLETE": 12, "RUNNING": 6}}
    counts["Mahdi__tcn"]["FAIL"] = 4
    for name, states in counts.items():
        csv = read_trials(optuna_corpus / f"csv_derived/DERIVED_optuna5_trials_dataframe__{name}.csv", study="s")
        others = [
            read_trials(optuna_corpus / f"json/DERIVED_optuna5cli__{name}.json", study="s"),
            read_trials(optuna_corpus / f"json/DERIVED_optuna3cli__{name}.json", study="s"),
            read_trials(optuna_corpus / f"dashboard_csv/DERIVED_dashboard__{name}.csv", study="s"),
        ]
        assert csv.trials["state"].value_counts().to_dict() == states
        for other in others:
            columns = [column for column in csv.trials if column not in ("start", "end")]
            # CSV writes an empty text, which a choice may be, like a cell that is missing.
            ours, theirs = (frame[columns].astype(object).replace("", None) for frame in (other.trials, csv.trials))
            ours, theirs = ours.where(ours.notna(), None), theirs.where(theirs.notna(), None)
            pd.testing.assert_frame_equal(ours, theirs)
            assert other.problems == ()
        for json_trials in (others[0].trials, others[1].trials):
            pd.testing.assert_series_equal(json_trials["start"], csv.trials["start"].dt.floor("s"))
        assert others[2].trials["start"].isna().all()


def test_an_infinite_objective_survives_every_format(optuna_corpus: Path) -> None:
    stored = read_trials(optuna_corpus / "sqlite/izzak98__dist-pred__LSTM@fbeef35d.db", timezone="UTC")
    assert np.isposinf(stored.trials["value"]).sum() == 1
    for path in (
        "json/DERIVED_optuna5cli__izzak98__LSTM.json",
        "csv_derived/DERIVED_optuna5_trials_dataframe__izzak98__LSTM.csv",
    ):
        assert np.isposinf(read_trials(optuna_corpus / path).trials["value"]).sum() == 1


@pytest.mark.slow
def test_tables_conform_and_nothing_is_dropped(optuna_corpus: Path) -> None:
    for path in sorted(p for p in optuna_corpus.rglob("*") if p.is_file() and p.name != "REFERENCE.jsonl"):
        found = identify(Source.open(path))
        assert found is not None and found[0] == "trials", path
        out = read(path)
        for frame, table in ((out.trials, TRIALS), (out.reports, REPORTS), (out.studies, STUDIES)):
            pd.testing.assert_frame_equal(frame, conform(frame, table))
        assert not out.trials.duplicated(["study", "trial"]).any()
        assert not any(problem.lost for problem in out.problems), (path, out.problems)


def test_schemas_of_the_corpus_are_the_ones_we_know(optuna_corpus: Path) -> None:
    from gpudiag.readers._studies.optuna_rdb import KNOWN, NEWEST

    seen = set()
    for path in (optuna_corpus / "sqlite").iterdir():
        connection = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
        seen |= {row[0] for row in connection.execute("SELECT version_num FROM alembic_version")}
        connection.close()
    assert seen <= {*KNOWN, NEWEST}
