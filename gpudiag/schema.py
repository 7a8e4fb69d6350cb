"""The columns of every table: name, kind, unit, legal range and meaning.

This file is the single source of truth: readers conform to it, tests check it and the documentation
is printed from it. Unknown values are NaN/NaT/<NA> or an absent column: never 0 and never -1.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import pandas as pd

MOST_MIB, MOST_W, MOST_J, MOST_MHZ = 1e8, 1e5, 1e12, 1e5
"""No board comes within a factor of ten of these: what is beyond is no reading at all. A power that a board cannot
draw but a counter can hold stays in, for the rule on implausible power."""
MOST_S = 100 * 365.25 * 86_400
"""No trial takes a hundred years."""
MOST_STEPS = 2**53
"""Beyond it a step and the next are the same number."""
ColumnKind = Literal["time", "text", "float", "int", "key"]
"""``int`` is nullable (Int64), ``key`` is an int64 that is always known."""


@dataclass(frozen=True)
class ColumnSpec:
    """One column. ``low``/``high`` bound what is physically possible, inclusive."""

    name: str
    kind: ColumnKind
    meaning: str
    unit: str = ""
    low: float | None = None
    high: float | None = None
    required: bool = False


@dataclass(frozen=True)
class TableSpec:
    """One table: what a row is, its key and its columns in printing order.

    ``prefixes`` name families of further columns (``params.<name>``), whose kind follows the data.
    """

    name: str
    row: str
    key: tuple[str, ...]
    columns: tuple[ColumnSpec, ...]
    prefixes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> ColumnSpec:
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> dict[str, ColumnSpec]:
        return {column.name: column for column in self.columns}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def required(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns if column.required)


def _pct(name: str, meaning: str) -> ColumnSpec:
    return ColumnSpec(name, "float", meaning, "%", 0, 100)


GPU = TableSpec(
    "gpu",
    "one GPU at one instant",
    ("gpu", "time"),
    (
        ColumnSpec("time", "time", "instant of the sample, UTC", required=True),
        ColumnSpec("gpu", "text", "index of the GPU, as text", required=True),
        _pct("util_pct", "share of the driver's last sample period with at least one kernel running"),
        _pct("mem_util_pct", "share of that period in which device memory was read or written"),
        ColumnSpec("mem_used_mib", "float", "memory in use on the device", "MiB", 0, MOST_MIB),
        ColumnSpec("mem_total_mib", "float", "memory of the device", "MiB", 0, MOST_MIB),
        ColumnSpec("mem_reserved_mib", "float", "memory set aside by the driver", "MiB", 0),
        ColumnSpec("power_w", "float", "power drawn by the board", "W", 0, MOST_W),
        ColumnSpec("power_instant_w", "float", "power drawn at the instant (NVML field 186)", "W", 0, MOST_W),
        ColumnSpec(
            "power_average_w", "float", "power drawn, mean over the last second (NVML field 185)", "W", 0, MOST_W
        ),
        ColumnSpec("power_limit_w", "float", "enforced power limit", "W", 0, MOST_W),
        ColumnSpec("power_default_w", "float", "the board's own power limit, before anybody set one", "W", 0, MOST_W),
        ColumnSpec("energy_j", "float", "energy counter since driver load", "J", 0, MOST_J),
        ColumnSpec("temp_c", "float", "core temperature", "°C", -50, 200),
        ColumnSpec("mem_temp_c", "float", "memory temperature", "°C", -50, 200),
        ColumnSpec("sm_clock_mhz", "float", "SM clock", "MHz", 0, MOST_MHZ),
        ColumnSpec("sm_clock_max_mhz", "float", "highest SM clock that the driver allows", "MHz", 0, MOST_MHZ),
        ColumnSpec("mem_clock_mhz", "float", "memory clock", "MHz", 0, MOST_MHZ),
        ColumnSpec("throttle_reasons", "int", "bit mask of NVML clocks-event reasons"),
        ColumnSpec("throttle_known", "int", "bit mask of the reasons that the source tells of; of all, where unknown"),
        ColumnSpec("ecc_uncorrected", "float", "uncorrectable ECC errors counted since driver load", "", 0, 2**32),
        ColumnSpec("pstate", "int", "performance state, 0 fastest", "", 0, 15),
        ColumnSpec("pcie_rx_mib_s", "float", "PCIe received", "MiB/s", 0),
        ColumnSpec("pcie_tx_mib_s", "float", "PCIe sent", "MiB/s", 0),
        _pct("fan_pct", "fan speed"),
        _pct("enc_pct", "video encoder utilization"),
        _pct("dec_pct", "video decoder utilization"),
        _pct("engine_active_pct", "DCGM 1001 where utilization is blank: of the busiest MIG instance, or of the GPU"),
        _pct("sm_active_pct", "share of SM-cycles with a resident warp (DCGM 1002)"),
        _pct("sm_occupancy_pct", "resident warps over the maximum (DCGM 1003)"),
        _pct("tensor_active_pct", "share of cycles the tensor pipe was active (DCGM 1004)"),
        _pct("dram_active_pct", "share of cycles device memory was active (DCGM 1005)"),
        ColumnSpec("tenant", "text", "pods or jobs that had it then, as monitoring names them"),
    ),
)

LOAD = (
    *("util_pct", "mem_util_pct", "mem_used_mib", "power_w", "power_instant_w", "power_average_w", "energy_j"),
    *("pcie_rx_mib_s", "pcie_tx_mib_s", "enc_pct", "dec_pct", "engine_active_pct"),
    *("sm_active_pct", "sm_occupancy_pct", "tensor_active_pct", "dram_active_pct"),
)
"""What tells of the work of a GPU, and so of whoever had it; the others tell of the board."""

GPUS = TableSpec(
    "gpus",
    "one GPU",
    ("gpu",),
    (
        ColumnSpec("gpu", "text", "index of the GPU, as text", required=True),
        ColumnSpec("uuid", "text", "NVML uuid"),
        ColumnSpec("bus_id", "text", "PCI bus id"),
        ColumnSpec("name", "text", "product name as the driver prints it"),
        ColumnSpec("mem_total_mib", "float", "memory of the device", "MiB", 0, MOST_MIB),
        ColumnSpec("power_limit_w", "float", "enforced power limit", "W", 0, MOST_W),
        ColumnSpec("power_default_w", "float", "the board's own power limit, before anybody set one", "W", 0, MOST_W),
        ColumnSpec("sm_clock_max_mhz", "float", "highest SM clock that the driver allows", "MHz", 0, MOST_MHZ),
        ColumnSpec("driver", "text", "driver version"),
        ColumnSpec("host", "text", "name of the machine that it is in"),
    ),
)

PROCESSES = TableSpec(
    "processes",
    "one process on one GPU at one instant",
    ("gpu", "pid", "time"),
    (
        ColumnSpec("time", "time", "instant of the sample, UTC", required=True),
        ColumnSpec("gpu", "text", "index of the GPU, as text", required=True),
        ColumnSpec("pid", "int", "process id", required=True),
        ColumnSpec("name", "text", "command"),
        ColumnSpec("mem_used_mib", "float", "device memory of the process", "MiB", 0),
        _pct("sm_pct", "SM share of the process in the last sample period"),
    ),
)

HOST = TableSpec(
    "host",
    "the host at one instant",
    ("time",),
    (
        ColumnSpec("time", "time", "instant of the sample, UTC", required=True),
        ColumnSpec("cpu_cores", "float", "cores that the training may use", "", 1),
        ColumnSpec("host_cores", "float", "cores of the host that the shares are of", "", 1),
        _pct("cpu_pct", "mean over all cores"),
        _pct("cpu_max_core_pct", "the busiest core"),
        ColumnSpec("process_cpu_max_pct", "float", "the busiest process, 100 = one core", "%", 0),
        ColumnSpec("ram_used_mib", "float", "memory in use", "MiB", 0),
        ColumnSpec("ram_total_mib", "float", "memory of the host", "MiB", 0),
        _pct("io_wait_pct", "share of CPU time waiting for input or output"),
        ColumnSpec("read_mib_s", "float", "bytes read from disks", "MiB/s", 0),
    ),
)

TRIALS = TableSpec(
    "trials",
    "one trial or task",
    ("study", "trial"),
    (
        ColumnSpec("study", "text", "name of the study or batch", required=True),
        ColumnSpec("trial", "key", "number of the trial within its study", required=True),
        ColumnSpec("name", "text", "name of the task, where it has one"),
        ColumnSpec("state", "text", "COMPLETE, PRUNED, FAIL, RUNNING or WAITING", required=True),
        ColumnSpec("start", "time", "start, UTC", required=True),
        ColumnSpec("end", "time", "end, UTC; NaT while open", required=True),
        ColumnSpec("last_seen", "time", "its last heartbeat, UTC"),
        ColumnSpec("marked", "time", "when it was marked FAIL or PRUNED long after its end, which nobody knows, UTC"),
        ColumnSpec("added", "text", "result or copy: its result was added to the study, in which it did not run"),
        ColumnSpec("duration_s", "float", "stated duration, only where start or end is unknown", "s", 0, MOST_S),
        ColumnSpec("value", "float", "objective of a single-objective study; a PRUNED trial's is its last report"),
        ColumnSpec("worker", "text", "worker or thread that ran it"),
        ColumnSpec("gpu", "text", "GPU it ran on, if declared"),
        ColumnSpec("pid", "int", "process id"),
        ColumnSpec("host", "text", "host name"),
        ColumnSpec("detail", "text", "failure text or note"),
    ),
    prefixes=("value_", "params.", "user_attrs.", "system_attrs."),
)

REPORTS = TableSpec(
    "reports",
    "one intermediate value",
    ("study", "trial", "step"),
    (
        ColumnSpec("study", "text", "name of the study", required=True),
        ColumnSpec("trial", "key", "number of the trial", required=True),
        ColumnSpec("step", "key", "step reported (often the epoch)", "", 0, MOST_STEPS, required=True),
        ColumnSpec("value", "float", "intermediate value", required=True),
        ColumnSpec("time", "time", "when it was reported, where a log tells"),
    ),
)

EVENTS = TableSpec(
    "events",
    "one event",
    ("time", "kind"),
    (
        ColumnSpec("time", "time", "instant, UTC; NaT where the source has no timestamp", required=True),
        ColumnSpec(
            "kind",
            "text",
            "oom, device_assert, illegal_access, nccl, xid, sxid, gpu_lost, killed, restart, worker, model, ...",
            required=True,
        ),
        ColumnSpec("detail", "text", "the line that says so", required=True),
        ColumnSpec("gpu", "text", "GPU concerned"),
        ColumnSpec("trial", "int", "trial concerned"),
        ColumnSpec("worker", "text", "worker that took the trial, as the line names it"),
        ColumnSpec("path", "text", "file it was found in"),
        ColumnSpec("line", "int", "line number in that file"),
        ColumnSpec("behind", "int", "ordinary lines behind it in that file: what was printed then tells of no error"),
    ),
)

STEPS = TableSpec(
    "steps",
    "one line of a training's log that says how far it is",
    ("path", "line"),
    (
        ColumnSpec("time", "time", "the line's own timestamp, UTC; NaT where it has none", required=True),
        ColumnSpec("step", "key", "steps done, as the line counts them", "", 0, MOST_STEPS, required=True),
        ColumnSpec("total", "int", "steps there will be", "", 0, MOST_STEPS),
        ColumnSpec("unit", "text", "what is counted: step or epoch", required=True),
        ColumnSpec("epoch", "int", "epoch that the line names"),
        ColumnSpec("elapsed_s", "float", "time since the bar or the log began, as stated", "s", 0, MOST_S),
        ColumnSpec("begun_s", "float", "time since the first timestamp of the log", "s", 0, MOST_S),
        ColumnSpec("step_s", "float", "stated time of a step", "s", 0, MOST_S),
        ColumnSpec("loader_s", "float", "stated wait for data in a step", "s", 0, MOST_S),
        ColumnSpec("samples_s", "float", "stated samples per second", "", 0),
        ColumnSpec("batch", "int", "samples of a step, as the line or one before it states", "", 1, MOST_STEPS),
        ColumnSpec("batch_of", "text", "whose samples: all (of all GPUs together); unknown without"),
        ColumnSpec("tokens_s", "float", "stated tokens per second", "", 0),
        ColumnSpec("tokens_of", "text", "whose tokens these are: gpu (of one), all (of all together); unknown without"),
        ColumnSpec("mfu_pct", "float", "stated model FLOPs utilization, by its own count and peak", "%", 0, 100),
        ColumnSpec("gpu_tflops", "float", "stated model TFLOP/s of one GPU, likewise", "TFLOP/s", 0),
        ColumnSpec(
            "meant",
            "text",
            "what the stated times are the mean of: window (the steps since the line before), step (that one), epoch "
            "(the epoch so far), running (all so far, or smoothed), training (all so far, without evaluations)",
        ),
        ColumnSpec(
            "not_finite",
            "int",
            "1 where the loss that the line states is NaN or infinite, or, of Hugging Face's Trainer, 0 beside such a "
            "norm of the gradients; 0 where it is finite; unknown without one",
            "",
            0,
            1,
        ),
        ColumnSpec("rank", "int", "rank of the process that wrote it"),
        ColumnSpec("trial", "int", "number of the trial that the line names"),
        ColumnSpec("series", "text", "kind of line; only lines of one kind count on", required=True),
        ColumnSpec(
            "since", "text", "what lines since the one before tell of: evaluation, checkpoint, resumption, failure, end"
        ),
        ColumnSpec("since_s", "float", "time of evaluations since the one before, by their own bars", "s", 0, MOST_S),
        ColumnSpec("evaluation_s", "float", "stated time of evaluations since the one before", "s", 0, MOST_S),
        ColumnSpec("checkpoint_s", "float", "stated time of checkpoints since the one before", "s", 0, MOST_S),
        ColumnSpec("then", "text", "on the last line: what those behind it tell of, likewise"),
        ColumnSpec(
            "then_s", "float", "time from the last line to the last of those, of lasting work if any", "s", 0, MOST_S
        ),
        ColumnSpec("then_evaluation_s", "float", "stated time of evaluations behind the last line", "s", 0, MOST_S),
        ColumnSpec("then_checkpoint_s", "float", "stated time of checkpoints likewise", "s", 0, MOST_S),
        ColumnSpec(
            "last_s",
            "float",
            "on the last line: time for which dated lines of any kind go on behind it, up to 10 min without one",
            "s",
            0,
            MOST_S,
        ),
        ColumnSpec("path", "text", "file it was found in", required=True),
        ColumnSpec("line", "key", "line number in that file", required=True),
    ),
)

PROFILED = TableSpec(
    "profiled",
    "one GPU in the profiled steps of one trace",
    ("path", "gpu"),
    (
        ColumnSpec("path", "text", "file of the trace", required=True),
        ColumnSpec("gpu", "text", "index of the GPU, as text", required=True),
        ColumnSpec("time", "time", "when the trace began, UTC; NaT where it has no date", required=True),
        ColumnSpec("rank", "int", "rank of the process"),
        ColumnSpec("world_size", "int", "ranks of the training"),
        ColumnSpec("n_steps", "int", "profiled steps; 0 where all that was recorded is one window"),
        ColumnSpec("window_s", "float", "profiled time", "s", 0, MOST_S),
        ColumnSpec("step_s", "float", "median time of a step", "s", 0, MOST_S),
        ColumnSpec("step_low_s", "float", "shortest step", "s", 0, MOST_S),
        ColumnSpec("step_high_s", "float", "longest step", "s", 0, MOST_S),
        _pct("compute_pct", "share of the profiled time for kernels that compute"),
        _pct("communication_pct", "for kernels of communication with none that computes beside them"),
        _pct("copy_pct", "for copies alone"),
        _pct("idle_pct", "for nothing; columns below divide it by what the host did, where the trace has that"),
        _pct(
            "queued_pct", "idle before work that had been launched when the gap began, which the host held up no more"
        ),
        _pct("data_pct", "idle while the host waited for the next batch"),
        _pct("pageable_pct", "idle while the host copied pageable memory to where the GPU can fetch it"),
        _pct("sync_pct", "idle while the host was blocked by a call that waits for the GPU"),
        _pct("memory_pct", "idle while the host took or freed memory"),
        _pct("setup_pct", "idle while the host set CUDA up"),
        _pct("optimizer_pct", "idle while the host prepared the optimizer's kernels"),
        _pct("operator_pct", "idle while the host prepared other kernels"),
        _pct("other_pct", "idle while the host did what the trace does not name"),
        _pct("communication_total_pct", "for kernels of communication, with and without computing beside them"),
        _pct("hidden_pct", "share of that time with computing beside it"),
    ),
)

MOST_RANK = 10**7
ENTRY_STATES = ("scheduled", "started", "completed", "none", "unknown")
"""How far a collective came on a rank; none: the rank has recorded no collective at all; unknown: damaged."""

COLLECTIVES = TableSpec(
    "collectives",
    "one entry of the flight recorder of one rank",
    ("path", "record"),
    (
        ColumnSpec("path", "text", "file of the dump", required=True),
        ColumnSpec("rank", "key", "rank of the process", "", 0, MOST_RANK, required=True),
        ColumnSpec("group", "text", "name of the process group", required=True),
        ColumnSpec("group_title", "text", "what the group is for, as the program says"),
        ColumnSpec("group_ranks", "text", "ranks of the group, joined by a comma"),
        ColumnSpec("record", "key", "number of the entry in its recorder, which keeps the last ones", required=True),
        ColumnSpec("kind", "text", "collective, which all ranks of the group call, or p2p", required=True),
        ColumnSpec("seq", "int", "number of the collective in its group, the same on all ranks", "", 0, 2**53),
        ColumnSpec("op", "int", "number of the operation, of which a coalesced collective has several", "", 0, 2**53),
        ColumnSpec("name", "text", "operation, such as all_reduce", required=True),
        ColumnSpec("state", "text", "scheduled, started, completed, none or unknown", required=True),
        ColumnSpec("time", "time", "when the rank scheduled it, UTC", required=True),
        ColumnSpec("started", "time", "when it was seen to have started, UTC"),
        ColumnSpec("completed", "time", "when it was seen to have ended, UTC"),
        ColumnSpec("input_sizes", "text", "shapes of what goes in, as 1024x8, 4"),
        ColumnSpec("input_elements", "int", "elements of these", "", 0, 2**53),
        ColumnSpec("input_types", "text", "their types"),
        ColumnSpec("output_sizes", "text", "shapes of what comes out"),
        ColumnSpec("output_elements", "int", "elements of these", "", 0, 2**53),
        ColumnSpec("output_types", "text", "their types"),
        ColumnSpec("timeout_s", "float", "time after which the watchdog ends the process", "s", 0, MOST_S),
        ColumnSpec("timed_out", "int", "1 where the watchdog gave it up", "", 0, 1),
        ColumnSpec("written", "time", "when the file was last written, UTC: the dump, or a copy of it"),
    ),
)

STUDIES = TableSpec(
    "studies",
    "one study or batch",
    ("study",),
    (
        ColumnSpec("study", "text", "name", required=True),
        ColumnSpec(
            "directions", "text", "MINIMIZE/MAXIMIZE per objective, joined by a comma; empty if unknown", required=True
        ),
        ColumnSpec("source", "text", "input it came from"),
        ColumnSpec("clock", "text", "how its timestamps are meant: utc, local, unknown"),
        ColumnSpec("space", "text", "JSON: low, high, step and log, or choices, by parameter, as declared"),
    ),
)

TABLES: dict[str, TableSpec] = {
    table.name: table
    for table in (GPU, GPUS, PROCESSES, HOST, TRIALS, REPORTS, EVENTS, STEPS, PROFILED, COLLECTIVES, STUDIES)
}

LASTING = ("evaluation", "checkpoint")
"""Other work of a training whose time a log may state."""
STATES = ("COMPLETE", "PRUNED", "FAIL", "RUNNING", "WAITING")
FINISHED = ("COMPLETE", "PRUNED", "FAIL")
STOPPED, ABANDONED = "STOPPED", "ABANDONED"
ADDED = "ADDED"
"""A result that was added to its study: no trial that ran, and none of OUTCOMES."""
OUTCOMES = ("COMPLETE", "PRUNED", "FAIL", STOPPED, "RUNNING", ABANDONED, "WAITING")
"""What became of a trial: its state, but STOPPED for a FAIL that somebody or a scheduler stopped, as its error says,
and ABANDONED for a RUNNING one of which something shows that it is dead."""
UNUSED_PCT = 1.0
"""A GPU that never rises above this utilization is not used."""
IDLE_PCT = 10.0
"""Below this utilization a GPU is idle (SageMaker Debugger, rule LowGPUUtilization, gpu_threshold 10); from it on it is
low. Drivers report whole percents: a reading of 10 stands for work at about 10 %, which is some."""
BUSY_PCT = 50.0
"""From here on it is busy, below it low (PyTorch profiler; ICSE'24 doi 10.1145/3597503.3639232)."""


def gpu_index(name: object) -> int | None:
    """The index that the name of a GPU is, None for any other name: '²' is a digit as well, and no number."""
    text = str(name)
    return int(text) if len(text) < 10 and text.isascii() and text.isdigit() else None


@cache
def text_dtype() -> str:
    """``str`` on pandas 3, ``object`` on pandas 2, whose ``str`` would turn NaN into 'nan'."""
    import pandas as pd

    return "str" if int(pd.__version__.split(".")[0]) >= 3 else "object"


def dtype(kind: ColumnKind) -> str:
    """The pandas dtype of a kind of column."""
    return {
        "time": "datetime64[us, UTC]",
        "text": text_dtype(),
        "float": "float64",
        "int": "Int64",
        "key": "int64",
    }[kind]


def empty(table: TableSpec) -> pd.DataFrame:
    """No rows and the required columns: what an absent table looks like."""
    return _empty(table).copy(deep=False)  # there is no row to share


@cache
def _empty(table: TableSpec) -> pd.DataFrame:
    import pandas as pd

    kinds = {table[name].kind for name in table.required}
    none = {kind: pd.Series(dtype=dtype(kind)) for kind in kinds}
    return pd.DataFrame({name: none[table[name].kind] for name in table.required})


def conform(frame: pd.DataFrame, table: TableSpec) -> pd.DataFrame:
    """``frame`` with the columns of ``table`` in order and of the right dtype.

    Required columns that are missing are added as unknown (a missing ``key`` column is a bug and
    raises KeyError); columns unknown to the table are dropped, except families in ``prefixes``;
    optional columns without a single value are dropped. Rows and their order are kept.
    """
    import pandas as pd

    out: dict[str, pd.Series] = {}
    for column in table.columns:
        if column.name in frame.columns:
            series = frame[column.name]
            if column.required or series.notna().any():
                wanted = dtype(column.kind)
                out[column.name] = series if series.dtype == wanted else series.astype(wanted)
        elif column.kind == "key":
            raise KeyError(f"table {table.name} needs column {column.name}")
        elif column.required:
            out[column.name] = pd.Series(pd.NA, index=frame.index).astype(dtype(column.kind))
    known = set(table.names)
    for name in family(frame.columns, table.prefixes):
        if name not in known:
            out[name] = frame[name]
    return pd.DataFrame(out, index=frame.index).reset_index(drop=True)


def has_values(table: pd.DataFrame, column: str) -> bool:
    """Whether the table has the column, and a value in it; mostly the first row does."""
    return column in table and bool(table[column].iloc[:1].notna().any() or table[column].notna().any())


def family(names: Iterable[object], prefixes: tuple[str, ...]) -> list[str]:
    """The column names that begin with one of the prefixes, in order."""
    return [name for name in names if isinstance(name, str) and name.startswith(prefixes)] if prefixes else []


def in_range(series: pd.Series, column: ColumnSpec) -> pd.Series:
    """True where the value is missing or within the column's physical bounds."""
    ok = series.isna()
    inside = series.notna()
    if column.low is not None:
        inside &= series >= column.low
    if column.high is not None:
        inside &= series <= column.high
    return ok | inside
