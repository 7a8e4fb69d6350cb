"""What travels to the page: read back as a browser reads it, and compared with the run."""

from __future__ import annotations

import json
import struct
import zlib
from base64 import b64decode
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sampleruns import diagnosed
from smallruns import gpu, gpus
from smallruns import run as small
from toyrun import toy_run

from gpudiag.analysis import Analysis
from gpudiag.diagnosis import Diagnosis, diagnose
from gpudiag.errors import NotMeasurable
from gpudiag.report._notebook.redact import redacted
from gpudiag.report._render.show import LANES
from gpudiag.report.timeline import page
from gpudiag.report.timeline.lanes import FAR, NO_CLOCK, Detail, lanes_of
from gpudiag.report.timeline.packed import MOST_CHARS, pack, packed
from gpudiag.run import Run

DTYPES = {1: "<u1", 2: "<u2", 4: "<u4"}
UPLOT = {
    "uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    "uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
    "uPlot.LICENSE": "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
}


def unpacked(text: str) -> Any:
    """The content, with arrays in their places."""
    raw = zlib.decompress(b64decode(text))
    (length,) = struct.unpack_from("<I", raw)
    assert length % 4 == 0

    def revived(value: Any) -> Any:
        if isinstance(value, list):
            return [revived(one) for one in value]
        if not isinstance(value, dict):
            return value
        if list(value) == ["$"]:
            size, at, n = value["$"]
            return np.frombuffer(raw, DTYPES[size], n, 4 + length + at)
        return {name: revived(one) for name, one in value.items()}

    return revived(json.loads(raw[4 : 4 + length]))


@pytest.fixture(scope="module")
def sample() -> Diagnosis:
    return diagnosed("memory-exhaustion")


@pytest.fixture(scope="module")
def content(sample: Diagnosis) -> Any:
    return unpacked(sample.timeline().packed)


@pytest.mark.slow
def test_every_trial_is_there_with_its_worker_state_and_times(sample: Diagnosis, content: Any) -> None:
    placed = sample.profiles["parallelism"].placed.set_index("trial").sort_index()
    trials = content["trials"]
    made = pd.DataFrame({name: trials[name] for name in ("start", "end", "worker", "state", "open")})
    made.index = pd.Index([int(name) for name in trials["names"]])
    made = made.sort_index()
    assert made.index.tolist() == placed.index.tolist()
    assert made["worker"].tolist() == placed["worker"].tolist()
    assert [trials["states"][code]["name"] for code in made["state"]] == placed["state"].tolist()
    assert made["open"].astype(bool).tolist() == placed["open"].tolist()
    origin = pd.Timestamp(content["start"], unit="s", tz="UTC")
    for name in ("start", "end"):
        away = (placed[name] - origin).dt.total_seconds() - made[name] * content["tick"]
        assert away.abs().max() <= content["tick"]


@pytest.mark.slow
def test_the_box_of_a_trial_says_its_parameters_value_and_why_it_ended(sample: Diagnosis, content: Any) -> None:
    trials = content["trials"]
    told = {column["name"]: [column["texts"][at] for at in column["at"]] for column in trials["columns"]}
    at = trials["names"].index("2")
    table = sample.run.trials.set_index("trial")
    assert told["batch_size"][at] == str(table.loc[2, "params.batch_size"]) and told["model"][at] == "base"
    assert float(told["lr"][at]) == pytest.approx(table.loc[2, "params.lr"], rel=1e-4)
    assert told["value"][at] == "" and told["ended"][at] == "out of memory"
    good = trials["names"].index("0")
    assert float(told["value"][good]) == pytest.approx(table.loc[0, "value"], rel=1e-4) and told["ended"][good] == ""
    assert not any("error" in name for name in told), "user attributes stay at home"


def test_curves_have_the_mean_of_the_measure(sample: Diagnosis, content: Any) -> None:
    (row,) = content["channels"][0]["rows"]
    seen = row["seen"] / 255
    mean = (row["mean"] * seen).sum() / seen.sum() * content["channels"][0]["factor"]
    assert mean == pytest.approx(sample.profiles["utilization"].mean_pct, rel=2e-3)
    factor = content["channels"][1]["factor"]
    (memory,) = content["channels"][1]["rows"]
    greatest = (memory["mean"].astype(int) + memory["above"]).max() * factor
    assert greatest == pytest.approx(sample.profiles["memory"].per_gpu["max_mib"].max() / 1024, abs=factor)


def test_the_ribbon_holds_the_seconds_of_the_ledger(sample: Diagnosis, content: Any) -> None:
    (row,) = content["ledger"]["rows"]
    lasting = (row["end"].astype(float) - row["start"]) * content["tick"]
    cells = [content["ledger"]["cells"][code]["key"] for code in row["cell"]]
    made = pd.Series(lasting).groupby(pd.Series(cells)).sum()
    totals = sample.profiles["ledger"].totals.set_index("cell")["gpu_s"]
    for cell, seconds in made.items():
        assert seconds == pytest.approx(totals[cell], abs=0.01 + 1e-3 * len(cells)), cell


def test_findings_stand_where_their_trials_are(sample: Diagnosis, content: Any) -> None:
    rules = {one["rule"]: one for one in content["findings"]}
    oom = rules["failures-out-of-memory"]
    assert oom["level"] == "warning" and len(oom["places"]) == 66
    trials = content["trials"]
    first = trials["names"].index("2")
    assert oom["places"][0] == pytest.approx([trials[n][first] * content["tick"] for n in ("start", "end")], abs=2e-3)
    assert rules["memory-near-limit"]["places"][0][0] == rules["memory-near-limit"]["places"][0][1]
    assert set(rules) <= {verdict.rule for verdict in sample.findings}
    assert not any(text.startswith("worker") for _, _, text in content["events"]) and len(content["events"]) == 102


@pytest.mark.slow
def test_times_are_those_of_the_zone_also_after_a_change() -> None:
    run = toy_run()
    zone = replace(run, info=replace(run.info, timezone="Asia/Kolkata"))
    assert unpacked(packed(Analysis(zone))[1])["zone"] == {"name": "Asia/Kolkata", "offsets": [[0.0, 19_800.0]]}
    autumn = pd.Timestamp("2025-10-26 00:30", tz="UTC") - run.gpu["time"].min()
    moved = zone.map_tables(lambda name, table: table.assign(**{
        column: table[column] + autumn for column in table if str(table[column].dtype).startswith("datetime")
    }))  # fmt: skip
    moved = replace(moved, info=replace(moved.info, timezone="Europe/Berlin"))
    offsets = unpacked(packed(Analysis(moved))[1])["zone"]["offsets"]
    start = unpacked(packed(Analysis(moved))[1])["start"]
    assert [seconds for _, seconds in offsets] == [7200.0, 3600.0]
    assert start + offsets[1][0] == pd.Timestamp("2025-10-26 01:00", tz="UTC").timestamp()


def test_without_trials_there_are_curves_and_without_telemetry_bars() -> None:
    dark = unpacked(packed(Analysis(toy_run(samples=0)))[1])
    assert dark["trials"] and not dark["channels"] and not dark["ledger"]["rows"]
    alone = unpacked(packed(Analysis(toy_run(trials=0)))[1])
    assert alone["trials"] is None and alone["channels"] and alone["ledger"]["rows"]
    with pytest.raises(NotMeasurable, match="neither trials"):
        packed(Analysis(toy_run(samples=0, trials=0)))


@pytest.mark.slow
def test_trials_that_are_a_sliver_are_shown_alone_and_that_is_said() -> None:
    run = toy_run()
    far = run.gpu.assign(time=run.gpu["time"] + pd.Timedelta(days=90))
    lanes = lanes_of(Analysis(replace(run, gpu=pd.concat([run.gpu, far], ignore_index=True))))
    assert lanes.notes == (FAR,)
    assert (lanes.end_us - lanes.start_us) / 1e6 < 86_400


@pytest.mark.slow
def test_clocks_that_do_not_match_are_named() -> None:
    run = toy_run()
    apart = replace(run, info=replace(run.info, clock=replace(run.info.clock, joined=False)))
    assert NO_CLOCK in lanes_of(Analysis(apart)).notes and NO_CLOCK not in lanes_of(Analysis(run)).notes


@pytest.mark.slow
def test_a_hostile_name_stays_text_and_leaves_no_element() -> None:
    evil = '</script><img src=x onerror="alert(1)"> "$": [1, 0, 9]'
    run = toy_run(evil)
    columns = {f"params.{evil}": evil, "detail": evil, "worker": evil}
    view = diagnose(replace(run, trials=run.trials.assign(**columns))).timeline()
    told = unpacked(view.packed)
    assert evil in told["label"] and evil in told["trials"]["workers"]
    assert evil in [column["name"] for column in told["trials"]["columns"]]
    assert "<img" not in view.html and view.html.count("</script>") == 2
    frame = view._repr_mimebundle_()["text/html"]
    inside = frame.partition('">')[2]  # srcdoc holds no bare ">"
    assert frame.count("<") == 3 and inside.startswith('<img alt="Timeline of') and inside.endswith('"></iframe>')


@pytest.mark.slow
def test_no_password_travels_in_the_data() -> None:
    run = toy_run()
    url, secret = "postgresql://ann:hunter2@db/study", "correct horse"
    trials = run.trials.assign(detail=f"cannot reach {url}", worker=secret)
    output = {"data": {LANES: packed(Analysis(replace(run, trials=trials)))[1]}}
    assert "hunter2" not in str(unpacked(output["data"][LANES])) and "cannot reach" in str(
        unpacked(output["data"][LANES])
    )
    before = unpacked(output["data"][LANES])
    after = unpacked(redacted(output, ["postgresql://ann:correct%20horse@db/study"])["data"][LANES])
    assert secret in before["trials"]["workers"] and secret not in str(after) and "***" in str(after)
    assert (after["trials"]["start"] == before["trials"]["start"]).all() and after["channels"][0]["rows"][0][
        "seen"
    ].any()


def test_less_detail_is_smaller_and_keeps_every_trial(sample: Diagnosis) -> None:
    whole = lanes_of(sample.analysis)
    less = lanes_of(sample.analysis, (), Detail(10_000, 2_000, parameters=1))
    assert len(pack(less)) < len(pack(whole)) / 3
    assert less.bars is not None and whole.bars is not None and less.bars.names == whole.bars.names
    assert less.notes == ("2 more parameters are not shown.",) and whole.notes == ()


@pytest.mark.slow
def test_it_shows_itself_in_a_notebook_without_a_network(sample: Diagnosis, tmp_path: Path) -> None:
    view = sample.timeline()
    bundle = view._repr_mimebundle_()
    assert bundle["text/plain"] == repr(view) and "452 trials and 1 GPU" in repr(view)
    assert bundle["text/html"].startswith("<iframe ") and 'sandbox="allow-scripts"' in bundle["text/html"]
    assert "default-src &#x27;none&#x27;" in bundle["text/html"]
    assert view.save(tmp_path / "timeline.html").read_text(encoding="utf-8") == view.html
    assert sample.run.timeline().lanes.findings == ()


@pytest.mark.slow
def test_the_same_run_gives_the_same_page() -> None:
    assert diagnose(toy_run()).timeline().html == diagnose(toy_run()).timeline().html


def test_uplot_is_the_pinned_one_unchanged(root: Path) -> None:
    folder = root / "gpudiag" / "report" / "timeline" / "assets"
    assert {name: sha256((folder / name).read_bytes()).hexdigest() for name in UPLOT} == UPLOT
    manifest = json.loads((root / "assets" / "timeline" / "package.json").read_text(encoding="utf-8"))
    lock = json.loads((root / "assets" / "timeline" / "package-lock.json").read_text(encoding="utf-8"))
    locked = lock["packages"]["node_modules/uplot"]
    assert manifest["dependencies"]["uplot"] == locked["version"] and locked["integrity"].startswith("sha512-")
    assert f"(v{locked['version']})" in page.asset("uPlot.iife.min.js") and "resolved" not in locked
    assert "MIT" in page.asset("uPlot.LICENSE") and "Leon Sorokin" in page.asset("uPlot.LICENSE")


def test_our_scripts_never_make_html_of_text() -> None:
    own = "".join(map(page.asset, page.SCRIPTS))
    for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "fetch("):
        assert way not in own, way
    assert all("</script" not in page.asset(name) for name in (*page.SCRIPTS, "uPlot.iife.min.js"))


def large(trials: int, gpus: int, samples: int, period_s: float) -> Run:
    """A run of that size with busy GPUs, dips and noise, and ten parameters a trial."""
    rng = np.random.default_rng(1)
    start = pd.Timestamp("2026-01-01", tz="UTC")
    base = toy_run()
    time = start + pd.to_timedelta(np.arange(samples) * period_s, unit="s")
    gpu = pd.DataFrame({"time": np.tile(time, gpus), "gpu": np.repeat([str(i) for i in range(gpus)], samples)})
    gpu["time"] = gpu["time"].astype("datetime64[us, UTC]")
    gpu["util_pct"] = rng.integers(40, 100, len(gpu)).astype(float)
    gpu["mem_used_mib"] = np.round(rng.uniform(9000, 70_000, len(gpu)))
    gpu["power_w"] = np.round(rng.uniform(100, 400, len(gpu)), 1)
    step = samples * period_s / max(trials // 8, 1)
    at = start + pd.to_timedelta(np.arange(trials) // 8 * step + rng.uniform(0, 1, trials), unit="s")
    state = rng.choice(["COMPLETE", "PRUNED", "FAIL"], trials, p=[0.5, 0.4, 0.1])
    table = pd.DataFrame({"study": "s", "trial": np.arange(trials), "state": state, "start": at})
    table["end"] = at + pd.to_timedelta(rng.uniform(0.3, 0.95, trials) * step, unit="s")
    table = table.astype({"start": "datetime64[us, UTC]", "end": "datetime64[us, UTC]"})
    table["value"] = rng.uniform(0, 1, trials)
    for i in range(10):
        table[f"params.p{i}"] = rng.uniform(0, 1, trials) if i % 2 else rng.choice(["adam", "sgd"], trials)
    return replace(base, gpu=gpu, trials=table, gpus=base.gpus.iloc[:0], events=base.events.iloc[:0])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("trials", "gpus", "samples", "period_s"),
    [(10_000, 1, 200_000, 1.0), (10_000, 8, 20_000, 1.0), (500, 64, 2_000, 5.0)],
)
def test_the_data_stay_small_for_large_runs(trials: int, gpus: int, samples: int, period_s: float) -> None:
    lanes, text = packed(Analysis(large(trials, gpus, samples, period_s)))
    assert len(text) <= MOST_CHARS
    told = unpacked(text)
    assert len(told["trials"]["names"]) == trials and len(told["gpus"]) == gpus
    assert lanes.raster.n >= 400


@pytest.mark.parametrize(("clock_mhz", "lanes"), [(2000.0, ["GPU clock"]), (2700.0, [])])
def test_clocks_have_a_lane_where_a_finding_is_about_them(clock_mhz: float, lanes: list[str]) -> None:
    """GPU 0 ran at 2,700 MHz."""
    at = np.arange(0.0, 600.0, 5.0)
    logs = [gpu(at, name, util_pct=96.0, sm_clock_mhz=mhz) for name, mhz in (("0", 2700.0), ("1", clock_mhz))]
    boards = gpus(gpu=["0", "1"], name=["NVIDIA A100-SXM4-40GB"] * 2)
    run = small(gpu=pd.concat(logs, ignore_index=True), gpus=boards)
    channels = {channel.name: channel for channel in lanes_of(Analysis(run), diagnose(run).findings).channels}
    assert [name for name in channels if "clock" in name] == lanes
    for name in lanes:
        means = {gpu: float(part["sm_clock_mhz"].median()) for gpu, part in channels[name].samples}
        assert means == {"0": 2700.0, "1": clock_mhz}
