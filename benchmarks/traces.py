"""Traces of torch.profiler against HTA (HolisticTraceAnalysis): the same shares, time and memory of both.

    python benchmarks/traces.py FOLDER --hta PYTHON [-o benchmarks/traces.md]

FOLDER holds traces, such as ``tests/data`` of HTA's repository; PYTHON is an interpreter with HTA (``pip install
HolisticTraceAnalysis``). HTA's window is from the first kernel to the last, over all profiled steps, and it leaves out
kernels whose launch was not recorded: both numbers are given, ours over all kernels and over HTA's.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpudiag.errors import GpudiagError
from gpudiag.readers._traces.breakdown import GpuTime
from gpudiag.readers._traces.trace import read_trace

FEWEST_KERNELS = 1000
GPU = ("kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset")
RUNTIME = ("cuda_runtime", "cuda_driver", "runtime")
COPIES = 15
"""Of the largest trace, behind each other, for the measurement of time and memory."""
THEIRS = """
import json, logging, resource, sys, time, warnings
warnings.simplefilter("ignore"); logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis
began = time.process_time(), time.time()
ta = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir="/", include_last_profiler_step=True)
shares, overlap = (f(visualize=False).iloc[0] for f in (ta.get_temporal_breakdown, ta.get_comm_comp_overlap))
print(json.dumps({"idle": shares["idle_time_pctg"], "compute": shares["compute_time_pctg"],
    "overlap": overlap["comp_comm_overlap_pctg"], "cpu_s": time.process_time() - began[0],
    "wall_s": time.time() - began[1], "mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}, default=float))
"""
OURS = """
import json, resource, sys, time
import gpudiag as gd
began = time.process_time(), time.time()
gd.read_trace(sys.argv[1]).breakdown
print(json.dumps({"cpu_s": time.process_time() - began[0], "wall_s": time.time() - began[1],
    "mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
"""


def asked(python: str, script: str, path: Path) -> dict[str, Any]:
    done = subprocess.run([python, "-c", script, str(path)], capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def over_kernels(path: Path) -> GpuTime:
    """Our shares over HTA's window: from the first to the last work of the GPU."""
    trace = read_trace(path)
    (gpu,) = replace(trace, steps=trace.steps[:0], host=trace.host[:0]).breakdown.gpus
    return gpu


def document(path: Path) -> dict[str, Any]:
    data = path.read_bytes()
    held: dict[str, Any] = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    return held


def launched(path: Path, folder: Path) -> Path:
    """The trace without the work of the GPU whose launch was not recorded."""
    held = document(path)
    kind = [str(one.get("cat", "")).lower() for one in held["traceEvents"]]
    pairs = list(zip(held["traceEvents"], kind, strict=True))
    known = {one.get("args", {}).get("correlation") for one, cat in pairs if cat in RUNTIME}
    held["traceEvents"] = [
        one for one, cat in pairs if cat not in GPU or one.get("args", {}).get("correlation") in known
    ]
    out = folder / f"{path.name}.json"
    out.write_text(json.dumps(held))
    return out


def enlarged(path: Path, folder: Path) -> Path:
    """COPIES of the events of a trace, one behind the other, as torch.profiler indents them."""
    held = document(path)
    events = [one for one in held["traceEvents"] if "ts" in one]
    length = max(one["ts"] + one.get("dur", 0) for one in events if one.get("ph") == "X") - min(
        one["ts"] for one in events if one.get("ph") == "X"
    )
    held["traceEvents"] = [one | {"ts": one["ts"] + 1.1 * length * n} for n in range(COPIES) for one in events]
    out = folder / "large.json"
    with out.open("w") as file:
        json.dump(held, file, indent=2)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--hta", required=True, help="an interpreter with HTA")
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    rows, sizes = [], []
    with tempfile.TemporaryDirectory() as folder:
        for path in sorted(given.folder.rglob("*.json*")):
            try:
                kernels = len(read_trace(path).gpu)
                if kernels < FEWEST_KERNELS:
                    continue
                same = over_kernels(launched(path, Path(folder)))
                theirs = asked(given.hta, THEIRS, path)
            except (GpudiagError, ValueError, subprocess.CalledProcessError) as error:
                print(f"{path.name}: {type(error).__name__}", file=sys.stderr)
                continue
            all_of = over_kernels(path)
            sizes.append((path.stat().st_size, path))
            pairs = ((all_of.idle_pct, same.idle_pct, theirs["idle"]),
                     (all_of.compute_pct, same.compute_pct, theirs["compute"]),
                     (all_of.hidden_pct, same.hidden_pct, theirs["overlap"]))  # fmt: skip
            cells = [f"{value:.2f}" for triple in pairs for value in triple]
            rows.append(f"| {path.name} | {kernels:,} | {' | '.join(cells)} |".replace("nan", "–"))
        large = enlarged(max(sizes)[1], Path(folder))
        size_mib = large.stat().st_size / 2**20
        ours, hta = asked(sys.executable, OURS, large), asked(given.hta, THEIRS, large)
    table = "\n".join(rows)
    text = TEXT.format(table=table, size=size_mib, copies=COPIES, fewest=FEWEST_KERNELS, ours=ours, hta=hta,
                       wall=hta["wall_s"] / ours["wall_s"], mib=ours["mib"] / size_mib)  # fmt: skip
    print(text)
    if given.output:
        given.output.write_text(text, encoding="utf-8")


TEXT = """# Traces of torch.profiler

`python benchmarks/traces.py FOLDER --hta PYTHON`, over `tests/data` of the public repository of HTA
(HolisticTraceAnalysis), all traces with {fewest:,} kernels and more that both read. Shares in percent, from the first
kernel to the last: ours over all kernels, ours over those whose launch was recorded, HTA's, which leaves out others.
What is left between the last two is HTA's rounding of nanoseconds to whole microseconds.

| trace | kernels | idle | same | HTA | computing | same | HTA | hidden | same | HTA |
|---|---|---|---|---|---|---|---|---|---|---|
{table}

## Time and memory

One trace of {size:,.0f} MiB ({copies} copies of the largest above, behind each other), each in a process of its own.

| | CPU [s] | wall [s] | peak memory [MiB] |
|---|---|---|---|
| gpudiag | {ours[cpu_s]:.1f} | {ours[wall_s]:.1f} | {ours[mib]:,.0f} ({mib:.1f} times the file) |
| HTA | {hta[cpu_s]:.1f} | {hta[wall_s]:.1f} | {hta[mib]:,.0f} |

HTA takes {wall:.1f} times as long.
"""

if __name__ == "__main__":
    main()
