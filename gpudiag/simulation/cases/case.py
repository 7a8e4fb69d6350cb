"""A sample case: one or two run folders, what lies beside them, and where it all comes from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeVar

from gpudiag.simulation.files import write_text
from gpudiag.simulation.simulator import Simulated
from gpudiag.simulation.spec import Spec
from gpudiag.simulation.trainings.spec import TrainingSpec
from gpudiag.simulation.trainings.training import SimulatedTraining

LOG = "train.log"
AnySpec = TypeVar("AnySpec", Spec, TrainingSpec)


@dataclass(frozen=True, eq=False)
class Case:
    """``runs`` by subfolder ('' is the case's own folder); ``logs``: lines of the log a run printed, by subfolder;
    ``extras``: lines of further files, which no run.toml names, by path.

    ``story`` is the body of ORIGIN.md: what the case stands for, what is scripted in it and what follows;
    ``made_by`` the command that writes it, where that is not ``gpudiag demo``; ``seeded``: with a seed of the caller.
    """

    name: str
    seed: int
    story: str
    runs: Mapping[str, Simulated | SimulatedTraining]
    logs: Mapping[str, Iterable[str]] = field(default_factory=dict)
    extras: Mapping[str, Iterable[str]] = field(default_factory=dict)
    made_by: str = ""
    seeded: bool = False

    def write(self, folder: Path) -> None:
        """Write every run and ORIGIN.md below ``folder``."""
        for sub, simulated in self.runs.items():
            simulated.write(folder / sub, **({"artifacts": (LOG,)} if sub in self.logs else {}))
            if sub in self.logs:
                write_text(folder / sub / LOG, self.logs[sub])
        for path, lines in self.extras.items():
            write_text(folder / path, lines)
        write_text(folder / "ORIGIN.md", self._origin().splitlines())

    def _origin(self) -> str:
        parts = [f"# {self.name}", self.story.strip(), *(_known(sub, run) for sub, run in self.runs.items())]
        seed = f" --seed {self.seed}" if self.seeded else ""
        command = self.made_by or f"gpudiag demo --case {self.name}{seed} -o FOLDER"
        parts.append(
            f"## Made by\n\n`{command}`, seed {self.seed}. "
            "The same command writes the same bytes. Nothing in it was measured on a real machine."
        )
        return "\n\n".join(parts)


def later(spec: AnySpec, days: int | None) -> AnySpec:
    """The same, that many days later; None: as it is."""
    if days is None:
        return spec
    return replace(spec, start=(datetime.fromisoformat(spec.start) + timedelta(days=days)).isoformat())


def _known(sub: str, simulated: Simulated | SimulatedTraining) -> str:
    """The truth of one run in a few lines; truth.json has all of it."""
    what = _of_training(simulated) if isinstance(simulated, SimulatedTraining) else _of_search(simulated)
    return "\n".join([f"## Known truth{f' of {sub}/' if sub else ''}", "", *(f"- {line}" for line in what)])


def _of_search(simulated: Simulated) -> Iterator[str]:
    truth = simulated.truth
    total = truth.ledger["gpu_s"].sum()
    ran = f"{truth.effective:.2f} on average, {truth.peak} at most"
    yield f"window {truth.window_s:.1f} s; trials truly running at once: {ran}"
    for row in truth.gpus.itertuples():
        yield f"GPU {row.gpu}: mean utilization {row.mean_util_pct:.1f} %, memory peak {row.mem_peak_mib:.0f} MiB"
    shares = truth.ledger.groupby("cell", sort=False)["gpu_s"].sum() / total * 100.0
    yield "ledger: " + ", ".join(f"{cell} {share:.2f} %" for cell, share in shares.items() if share > 0)
    yield "every number, trial by trial: `truth.json`"


def _of_training(simulated: SimulatedTraining) -> Iterator[str]:
    low, high = simulated.span_s
    seconds = (high - low) * len(simulated.history.ranks)
    yield f"window {high - low:.1f} s on {len(simulated.history.ranks)} GPUs"
    for rank, talked_s in enumerate(simulated.talked_s()):
        yield f"rank {rank}: {talked_s:.1f} s in collectives"
    if hang := simulated.spec.between.hang:
        yield f"rank {hang.rank} never came to all-reduce {hang.step + 1}"
    shares = {cause: 100 * idle_s / seconds for cause, idle_s in simulated.idle_s().items() if idle_s > 0}
    yield "time without a kernel: " + ", ".join(f"{cause} {share:.2f} %" for cause, share in shares.items())
    yield "in seconds: `truth.json`"
