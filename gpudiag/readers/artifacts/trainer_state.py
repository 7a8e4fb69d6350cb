"""``trainer_state.json`` of Hugging Face's Trainer, in a checkpoint or beside the model: what it logged, by step."""

from __future__ import annotations

import math
import re

from gpudiag.errors import InputError
from gpudiag.readers._io.json_values import read_json
from gpudiag.readers._io.paths import as_text
from gpudiag.readers._io.source import Source
from gpudiag.readers._steps.stated_loss import not_finite_of_trainer
from gpudiag.readers._steps.step_line import StepLine
from gpudiag.readers._steps.step_log import StepLog
from gpudiag.readers._steps.trainer_history import history_of
from gpudiag.readers._steps.trainer_line import HISTORY
from gpudiag.readers._steps.trainer_session import Session, session_rows, sessions_note
from gpudiag.readers.base import Reader, ReadOptions, Trials

NAME = "trainer-state"
_ENOUGH = 2
"""Lines on steps with a time each make it a clock."""
_NAMES = tuple(re.compile(rf'"{name}"\s*:') for name in ("global_step", "is_world_process_zero", "log_history"))


def recognises(source: Source) -> bool:
    """A JSON object with the fields of ``TrainerState``, sorted by name: those before the history are short."""
    if source.is_binary or not source.text.lstrip().startswith("{"):
        return False
    return all(name.search(source.text[:8192]) for name in _NAMES)


def read(source: Source, options: ReadOptions) -> Trials:
    """Entries of ``log_history`` as table ``steps``, each by its number in it. Raises InputError without one."""
    try:
        state = read_json(source.read_text())
    except (ValueError, RecursionError) as error:
        raise InputError(f"{source.path}: is no whole JSON document; copy the trainer_state.json again.") from error
    if not isinstance(state, dict) or not isinstance(state.get("log_history"), list):
        raise InputError(f"{source.path}: has no log_history; expected the trainer_state.json of a training.")
    session, why = history_of(state)
    name = as_text(source.path.name)
    if not session.every:
        return Trials(notes=(f"{name}: its log_history tells of no step and of no evaluation.",), reader=NAME)
    if sum(line.kind == "step" and line.seconds > 0 for line in session.lines) >= _ENOUGH:
        log = _clocked(session, source)
        return Trials(steps=log.frame(options.timezone)[0], notes=(f"{name}: {log.note()}.",), reader=NAME)
    notes = [f"{name}: {sessions_note([session])}."]
    if why:
        notes.append(f"{name}: the time of the training that it states is not used, for {why}.")
    return Trials(steps=session_rows([session], source.path, options.timezone)[0], notes=tuple(notes), reader=NAME)


def _clocked(session: Session, source: Source) -> StepLog:
    """Where tokens are counted, each line on a step states the time since the training was begun or resumed."""
    log = StepLog(source.path)
    step = StepLine(HISTORY, 0, session.total, meant="running")
    for line in session.every:
        if line.kind == "step":
            loss = not_finite_of_trainer(line.said)
            log.add(line.number, step._replace(step=int(line.step or 0), elapsed_s=line.seconds, not_finite=loss), "")
        elif line.kind == "evaluation" and not math.isnan(line.seconds):
            log.tell(f"eval_runtime: {round(line.seconds, 4)}", "")
    return log


READER: Reader[Trials] = Reader(NAME, recognises, read)
