"""Every input that is read, with the beginning of a file each: of the readers' tests, of data/samples, or below.

tests/docs/test_reference_pages.py asks the readers whether they recognize what stands below.
"""

from __future__ import annotations

import gzip
import importlib
import inspect
import re
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as parquet

from gpudiag.readers import artifacts, telemetry, trials
from gpudiag.readers.base import Reader

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests" / "readers" / "telemetry"
SAMPLES = ROOT / "data" / "samples"
Content = str | bytes | Mapping[str, str]
LINES, WIDTH = 6, 700
HEAD = """# Input formats

What a file is, gpudiag tells by its content, never by its name; gzip and zstd are read through. `gpudiag inspect FILE`
says what one is taken for, by the names below. A reader takes more shapes of a format than the one that is shown."""
KINDS = (
    ("Logs of GPU metrics", telemetry.READERS),
    ("Studies and tables of trials", trials.READERS),
    ("What trainings and batches leave behind", artifacts.READERS),
)
FILES = {
    "optuna-sqlite": "healthy/optuna.db",
    "torch-profiler": "slow-rank/rank0.pt.trace.json.gz",
    "torch-flight-recorder": "hung-collective/nccl_trace_rank_0.json",
    "training-log": "starved-input-pipeline/before/train.log",
}
"""By reader a file of data/samples."""
_WORKER = '"worker_id":"87be3162-ed49-4a18-8f6d-5f8533be186f-1400"'
WRITTEN: Mapping[str, Content] = {
    "optuna-journal": f"""\
{{"op_code":0,{_WORKER},"study_name":"lr-search","directions":[1]}}
{{"op_code":4,{_WORKER},"study_id":0,"datetime_start":"2026-03-01T08:22:45.923931+00:00"}}
{{"op_code":7,{_WORKER},"trial_id":0,"step":1,"intermediate_value":0.9}}
{{"op_code":6,{_WORKER},"trial_id":0,"state":1,"values":[0.0011],"datetime_complete":"2026-03-01T08:31:02.979521+00:00"}}
""",
    "optuna-trials-csv": """\
number,value,datetime_start,datetime_complete,duration,params_lr,state
0,0.0011,2026-03-01 08:22:45.923931,2026-03-01 08:31:02.979521,0 days 00:08:17.055590,0.0011,COMPLETE
""",
    "optuna-dashboard-csv": """\
Number,State,Value,Param lr
0,Complete,0.0011,0.0011
1,Pruned,,0.0420
""",
    "optuna-cli-json": """\
[{"number": 0, "value": 0.0011, "datetime_start": "2026-03-01 08:22:45", "datetime_complete": "2026-03-01 08:31:02",
  "duration": "0:08:17", "params": {"lr": 0.0011}, "state": "COMPLETE"}]
""",
    "optuna-cli-yaml": """\
- datetime_complete: '2026-03-01 08:31:02'
  datetime_start: '2026-03-01 08:22:45'
  duration: '0:08:17'
  number: 0
  params:
    lr: 0.0011
  state: COMPLETE
  value: 0.0011
""",
    "task-jsonl": """\
{"task": "fold-1", "status": "ok", "start": "2026-03-01T10:00:00+00:00", "end": "2026-03-01T10:12:30+00:00"}
{"task": "fold-2", "status": "failed", "start": "2026-03-01T10:12:31+00:00", "end": "2026-03-01T10:13:02+00:00"}
""",
    "task-csv": """\
task,status,start,duration_s
fold-1,ok,2026-03-01T10:00:00Z,750
fold-2,failed,2026-03-01T10:12:31Z,31
""",
    "slurm-sacct": """\
JobID|JobName|State|ExitCode|Start|End|Elapsed|AllocTRES|MaxRSS|NodeList
4711|train|COMPLETED|0:0|2026-01-15T19:00:00|2026-01-15T20:00:00|01:00:00|billing=8,cpu=8,gres/gpu=1,mem=64G,node=1||node07
""",
    "slurm-json": """\
{"jobs": [
  {"job_id": 4711, "name": "train", "nodes": "node07", "restart_cnt": 0,
   "state": {"current": ["COMPLETED"], "reason": "None"},
   "time": {"elapsed": 3600, "end": 1772359200, "start": 1772355600, "submission": 1772355540},
   "tres": {"allocated": [{"type": "gres", "name": "gpu", "id": 1001, "count": 1}]}}
], "meta": {"plugin": {"data_parser": "data_parser/v0.0.41"}}}
""",
    "slurm-scontrol": """\
JobId=4711 JobName=train
   JobState=RUNNING Reason=None Dependency=(null)
   StartTime=2026-01-15T19:00:00 EndTime=2026-01-15T20:00:00 Deadline=N/A
   NodeList=node07
   AllocTRES=cpu=8,mem=64G,node=1,billing=8,gres/gpu=1
     Nodes=node07 CPU_IDs=0-7 Mem=65536 GRES=gpu:a100:1(IDX:2)
""",
    "nextflow-trace": "\n".join(
        "\t".join(row.split("|"))
        for row in (
            "task_id|hash|native_id|name|status|exit|submit|duration|realtime|%cpu|peak_rss|peak_vmem|rchar|wchar",
            "1|7f/ad2f91|2301|TRAIN|COMPLETED|0|2026-03-01 10:00:00.250|12m 30s|12m 12s|311.5%|9.1 GB|31 GB|2 GB|1 GB",
        )
    )
    + "\n",
    "lightning-csv": """\
epoch,step,train_loss,val_loss
0,49,0.83,
0,99,0.71,
0,99,,0.69
""",
    "ray-tune": {
        "experiment_state-2026-03-01_10-00-00.json": '{"checkpoints": []}\n',
        "train_a1b2c_00000_0_lr=0.01_2026-03-01_10-00-00/params.json": '{"lr": 0.01}\n',
        "train_a1b2c_00000_0_lr=0.01_2026-03-01_10-00-00/result.json": '{"trial_id": "a1b2c_00000", '
        '"training_iteration": 1, "timestamp": 1772359260, "time_this_iter_s": 60.0, "time_total_s": 60.0, '
        '"done": false, "loss": 0.83}\n',
    },
    "ray-tune-table": """\
loss,timestamp,done,training_iteration,trial_id,date,time_this_iter_s,time_total_s,pid,hostname,config/lr
0.83,1772359260,True,1,a1b2c_00000,2026-03-01_10-01-00,60.0,60.0,4711,node07,0.01
""",
    "wandb-run": {
        "run-20260301_100000-a1b2c3d4/files/wandb-metadata.json": '{"startedAt": "2026-03-01T10:00:00.000000Z", '
        '"program": "train.py", "gpu_count": 1}\n',
        "run-20260301_100000-a1b2c3d4/files/wandb-summary.json": '{"loss": 0.83, "_runtime": 750, "_step": 99}\n',
        "run-20260301_100000-a1b2c3d4/files/config.yaml": "lr:\n    value: 0.01\n",
    },
    "hydra-multirun": {
        "multirun.yaml": "hydra:\n  mode: MULTIRUN\n",
        "0/.hydra/overrides.yaml": "- lr=0.01\n",
        "0/train.log": "[2026-03-01 10:00:00,250][__main__][INFO] - step 1\n",
        "1/.hydra/overrides.yaml": "- lr=0.1\n",
    },
    "metrics-csv": """\
epoch,time,train/box_loss,train/cls_loss,metrics/mAP50(B),val/box_loss,lr/pg0
1,345.12,1.523,2.104,0.312,1.611,0.0033
2,689.87,1.401,1.706,0.388,1.502,0.0066
3,1034.20,1.352,1.594,0.421,1.463,0.0098
""",
    "step-jsonl": """\
{"step": 10, "loss": 2.31, "lr": 0.0001, "time": 1772359260.0, "step_time": 0.52}
{"step": 20, "loss": 2.12, "lr": 0.0001, "time": 1772359265.2, "step_time": 0.51}
{"step": 30, "loss": 2.03, "lr": 0.0001, "time": 1772359270.3, "step_time": 0.52}
""",
    "trainer-state": """\
{
  "global_step": 100,
  "is_world_process_zero": true,
  "log_history": [
    {"epoch": 0.5, "grad_norm": 1.2, "learning_rate": 2.5e-05, "loss": 2.31, "step": 50},
    {"epoch": 1.0, "grad_norm": 1.1, "learning_rate": 0.0, "loss": 2.01, "step": 100},
    {"epoch": 1.0, "eval_loss": 1.9, "eval_runtime": 12.5, "eval_samples_per_second": 80.0, "step": 100},
    {"epoch": 1.0, "step": 100, "train_loss": 2.16, "train_runtime": 65.5, "train_steps_per_second": 1.527}
  ],
  "max_steps": 100
}
""",
}

IN_WORDS = {
    "optuna-trials-parquet": "Parquet, with the columns of the CSV.",
    "tensorboard": "Binary: records of a TFRecord file, the first of which holds `brain.Event:2`.",
    "mlflow-steps": "Folder `metrics` of a run in `mlruns/`: a file a metric, a line `1772359265200 2.12 20` a value.",
    "nsight-systems": "SQLite, with the tables `StringIds` and `CUPTI_ACTIVITY_KIND_KERNEL`, from "
    "`nsys export --type sqlite report.nsys-rep`.",
}
"""Of files that no test holds as bytes."""


def formats_page() -> str:
    """The page, a section a format; those that are only known to be refused together."""
    shown = {**samples_of_tests(), **{name: _of_samples(file) for name, file in FILES.items()}, **WRITTEN}
    parts = [HEAD]
    for title, readers in KINDS:
        parts.append(f"## {title}")
        for reader in (one for one in readers if not one.refuses):
            parts += [f"### {reader.name}", about(reader)]
            if reader.name in shown:
                parts.append(beginning(shown[reader.name]))
            elif reader.name in IN_WORDS:
                parts.append(IN_WORDS[reader.name])
    refused = [one for _, readers in KINDS for one in readers if one.refuses]
    rows = [f"| {one.name} | {about(one)} |" for one in refused]
    parts += ["## Known, but not read", "gpudiag says what these lack, or which of them it reads."]
    return "\n\n".join([*parts, "\n".join(["| Name | What it is |", "|---|---|", *rows])]) + "\n"


def samples_of_tests() -> dict[str, Content]:
    """By reader of telemetry the first sample of its tests."""
    sys.path.insert(0, str(TESTS))
    try:
        modules = [
            importlib.import_module(f"dialects.{path.stem}") for path in sorted((TESTS / "dialects").glob("*.py"))
        ]
    finally:
        sys.path.remove(str(TESTS))
    out: dict[str, Content] = {}
    for module in modules:
        for sample in module.SAMPLES:
            out.setdefault(sample.reader, sample.content)
    return out


def about(reader: Reader) -> str:
    """What its module says of the format, as Markdown."""
    doc = inspect.getdoc(sys.modules[inspect.unwrap(reader.read).__module__]) or ""
    first = re.sub(r" \(see [^)]*\)", "", doc.partition("\n\n")[0])
    return re.sub(r":\w+:`~?([^`]+)`", r"`\1`", " ".join(first.split()).replace("``", "`")).replace("|", "\\|")


def beginning(content: Content) -> str:
    """The first lines as a block; of a folder those of each file, of a database or Parquet file its names."""
    if isinstance(content, Mapping):
        listed = [f"{name}\n{_lines(text, 2, '    ')}" for name, text in list(content.items())[:4]]
        return _block("\n".join(listed))
    if isinstance(content, str):
        return _block(_lines(content, LINES))
    if content.startswith(b"PAR1"):
        return f"Parquet, with the columns {_listed(parquet.read_schema(BytesIO(content)).names)}."
    if content.startswith(b"SQLite format 3"):
        return f"SQLite, with the tables {_listed(_tables(content))}."
    return f"Binary; it begins with `{content[:8].hex(' ')}` (hexadecimal)."


def _of_samples(file: str) -> Content:
    raw = (SAMPLES / file).read_bytes()
    raw = gzip.decompress(raw) if file.endswith(".gz") else raw
    return raw if raw.startswith(b"SQLite") else raw.decode()


def _tables(content: bytes) -> Iterator[str]:
    with TemporaryDirectory() as folder:
        path = Path(folder, "there.db")
        path.write_bytes(content)
        connection = sqlite3.connect(path)
        yield from (
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1")
        )
        connection.close()


def _listed(names: Iterator[str] | list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _lines(text: str, most: int, indent: str = "") -> str:
    plain = re.sub(r"\x1b\[[0-9;]*m|\x1b\(B", "", text)
    return "\n".join(f"{indent}{line[:WIDTH]}{'…' if len(line) > WIDTH else ''}" for line in plain.splitlines()[:most])


def _block(text: str) -> str:
    return f"```text\n{text}\n```"
