"""The spellings of a task log: which keys and words say how a task ended, when it ran and where."""

from __future__ import annotations

import re

_REASONS = "timeout timed_out oom killed cancelled canceled aborted interrupted preempted"
_STATES = {
    "COMPLETE": "ok okay success successful succeeded complete completed done finished passed pass",
    "FAIL": f"failed failure fail error errored exception crashed crash out_of_memory {_REASONS}",
    "RUNNING": "running started start in_progress",
    "WAITING": "waiting pending queued scheduled",
    "PRUNED": "pruned early_stopped early_stopping",
}
STATE_OF = {word: state for state, words in _STATES.items() for word in words.split()}
REASONS = frozenset(_REASONS.split())
"""Words for a failure that say why. What was out of memory, GPU or host, ``out_of_memory`` does not say."""


def word_of(text: str) -> str:
    """A word as it stands here: ``early_stopped`` of ``Early-stopped``."""
    return re.sub(r"[ -]+", "_", text.strip().lower())


def _keys(text: str) -> tuple[str, ...]:
    return tuple(text.split())


EXIT_CODE = _keys("exit_code returncode exitcode")
STATUS = _keys("status state outcome result ok success succeeded failed") + EXIT_CODE
START = _keys(
    "start start_time started started_at start_ts start_timestamp time_start begin begin_time datetime_start t_start"
)
END = _keys(
    "end end_time ended ended_at end_ts end_timestamp time_end finish finished finished_at finish_time completed_at "
    "completed completion_time datetime_complete t_end"
)
MOMENT = _keys("timestamp time ts datetime logged_at created_at")
DURATION_S = _keys(
    "duration_s duration_sec duration_seconds duration elapsed_s elapsed_sec elapsed_seconds elapsed seconds secs "
    "runtime runtime_s run_time took took_s wall_s wall_time time_s"
)
DURATIONS = {
    DURATION_S: 1.0,
    _keys("duration_ms elapsed_ms runtime_ms took_ms"): 1e-3,
    _keys("duration_min duration_mins duration_minutes elapsed_min elapsed_minutes runtime_min minutes"): 60.0,
    _keys("duration_h duration_hours elapsed_h elapsed_hours runtime_h hours"): 3600.0,
}
"""Seconds of each unit, by the keys that have it."""
TIMES = START + END + MOMENT + tuple(key for keys in DURATIONS for key in keys)
TASK = _keys("name task task_name task_id window_label label job job_name job_id run_name run_id id")
TASK_PARTS = _keys("symbol window fold seed")
"""What names a task that has no name of its own, together."""
DETAIL = _keys("error error_message exception message reason detail traceback stderr")
STUDY = _keys("batch_id batch study experiment sweep")
PARAMETERS = _keys("params parameters hyperparameters hparams config args kwargs hyperparams")
PLACES = {
    "gpu": _keys("gpu gpu_id gpu_index device device_id cuda_device gpu_device_id"),
    "worker": _keys("worker worker_id worker_name thread process_name rank"),
    "pid": _keys("pid process_id"),
    "host": _keys("host hostname node machine"),
}
TAKEN = frozenset(STATUS + TIMES + DETAIL + STUDY).union(*PLACES.values())
"""Keys that have a column of their own."""
NOT_TASKS = _keys("op_code training_iteration _runtime level levelname")
"""Keys of Optuna journals, Ray Tune results, wandb events and ordinary logs."""
OF_GPUS = re.compile(r"util|power|watt|temp|memory\.used|mem_used|vram")
"""In a name of a column: beside timestamps, one of samples."""
