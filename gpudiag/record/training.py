"""A training that is recorded by its framework's callback: its GPUs and host by a recorder, its steps beside them."""

from __future__ import annotations

import atexit
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from gpudiag.errors import GpudiagError
from gpudiag.record.recorder import Recorder
from gpudiag.record.step_writer import OtherWork, StepWriter
from gpudiag.record.torch_cuda import peak_reserved_mib
from gpudiag.record.worker import say
from gpudiag.report.format import memory

Class = TypeVar("Class", bound=type)


class TrainingRecord:
    """What the callbacks of :mod:`gpudiag.integrations` write, between :meth:`begin` and :meth:`end`.

    Every rank writes its own steps, ``NAME.steps.jsonl`` beside ``path``; GPUs and host are recorded to ``path`` by
    the first rank of each machine. The files of ranks but 0 are called ``NAME.rank3...``. Without a driver, or where
    recording cannot begin, one sentence on stderr says so and the steps are written all the same.

    Args:
        path: as of :class:`gpudiag.Recorder`.
        options: further arguments of it.
    """

    def __init__(self, path: str | Path, options: dict[str, Any]) -> None:
        Recorder(path, **options)  # a misspelt argument fails where it stands, and not when the training begins
        self._path, self._options = Path(path), options
        self._recorder: Recorder | None = None
        self._steps: StepWriter | None = None
        self._ended_at: int | None = None  # the step, of a training that nothing ended before its time

    def begin(self, step: int = 0, *, rank: int = 0, local_rank: int = 0, world_size: int = 1) -> None:
        """The training begins behind ``step`` steps."""
        if self._steps is not None:  # nobody said that the one before had ended
            self.end("interrupted")
        path = self._path.with_stem(f"{self._path.stem}.rank{rank}") if rank else self._path
        steps = StepWriter(path.with_suffix(".steps.jsonl"), rank if world_size > 1 else None)
        steps.begin(step, goes_on=self._ended_at == step)
        try:
            if local_rank == 0:
                self._start(path)
        except GpudiagError as error:
            say(f"{error} Only the steps of the training are recorded.")
        self._steps = steps
        steps.leave_out()

    def begin_machine(self) -> None:
        """Record the machine alone: others know the steps."""
        self.end()
        self._start(self._path)

    def _start(self, path: Path) -> None:
        self._recorder = Recorder(path, **self._options).start()
        atexit.register(self.end)  # not every framework says that a training has failed

    def mark(self, kind: str, detail: str) -> None:
        """An event of the recording."""
        if self._recorder is not None:
            self._recorder.mark(kind, detail)

    def batch_begins(self) -> None:
        """The next batch is there."""
        if self._steps is not None:
            waited_s = self._steps.batch_begins()
            if self._recorder is not None and waited_s is not None:
                self._recorder.waited(waited_s, elsewhere=True)

    def batch_ended(self, step: int, epoch: int | None = None) -> None:
        """The work on a batch has ended; ``step`` steps are done."""
        if self._steps is not None:
            self._steps.batch_ended(step, epoch)

    def other_work(self, work: OtherWork, *, goes_on: bool = False) -> None:
        """An evaluation or a checkpoint has ended; with ``goes_on`` it has begun and no end will be known."""
        if self._steps is not None:
            self._steps.other_work(work, goes_on=goes_on)

    def leave_out(self) -> None:
        """What has passed since the last call was neither a wait for data nor work on a step."""
        if self._steps is not None:
            self._steps.leave_out()

    def wait_is_unknown(self) -> None:
        """The framework gets its next batch where nobody can see it."""
        if self._steps is not None:
            self._steps.wait_is_unknown()

    def epoch_ended(self, number: int) -> None:
        """Sums of the epoch, and the most memory so far, as events of the recording."""
        if self._recorder is not None:
            self._recorder.epoch(number)
            if (peak_mib := peak_reserved_mib()) is not None:
                self._recorder.mark("peak_memory", f"PyTorch has reserved at most {memory(peak_mib)} so far")

    def end(self, why: str = "") -> None:
        """End both files; may be called twice. ``why``: what ended the training before its time."""
        recorder, steps, self._recorder, self._steps = self._recorder, self._steps, None, None
        atexit.unregister(self.end)
        try:
            if steps is not None:
                self._ended_at = None if why else steps.step
                steps.close()
        finally:
            if recorder is not None:
                if why:
                    recorder.mark("exception", why)
                recorder.stop()

    def give_up(self, error: Exception) -> None:
        """End it because of a failure of our own, of which one sentence on stderr is all that anybody notices."""
        say(f"recording the training has stopped: {type(error).__name__}: {error}")
        try:
            self.end()
        except Exception:  # the same full disk
            self._steps = self._recorder = None


def harmless(callback: Class) -> Class:
    """A class decorator: what fails in a hook of a callback ends its ``record`` and never reaches the training."""
    for name, hook in list(vars(callback).items()):
        if name.startswith("on_") or name == "setup":
            setattr(callback, name, _caught(hook))
    return callback


def _caught(hook: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(hook)
    def call(self: Any, *arguments: Any, **named: Any) -> None:
        try:
            hook(self, *arguments, **named)
        except Exception as error:  # whatever it is, the training goes on
            self.record.give_up(error)

    return call
