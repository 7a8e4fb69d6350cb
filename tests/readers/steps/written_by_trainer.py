"""What Hugging Face's Trainer writes of a training whose times are known, as its source prints and saves it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Entry = dict[str, Any]


@dataclass
class Trainer:
    """``n`` steps of ``step_s`` s, an evaluation of ``evaluate_s`` s each ``evaluate`` steps, and 12 s of which no line
    tells; ``begun`` steps were done before by another call. ``total``: steps of the whole schedule. ``newer``:
    Transformers after 5.0; before, speeds and the mean loss were of all steps, and losses rounded.
    """

    n: int = 300
    log: int = 10
    evaluate: int = 100
    step_s: float = 1.0
    evaluate_s: float = 40.0
    begun: int = 0
    total: int = 300
    newer: bool = False
    counts_tokens: bool = False
    loss: float = 2.5
    falls: float = 400.0
    ends: bool = True
    history: list[Entry] = field(init=False)

    def __post_init__(self) -> None:
        self.history, at_s, losses = [], 0.0, 0.0
        for step in range(1, self.n + 1):
            anew = step > self.begun
            at_s += self.step_s
            losses += self.loss_of(step) * anew
            if step % self.log == 0:
                mean = sum(map(self.loss_of, range(step - self.log + 1, step + 1))) / self.log
                said = {"loss": mean if self.newer else round(mean, 4), "grad_norm": 1.25, "learning_rate": 5e-5}
                if self.counts_tokens:
                    said |= {"num_input_tokens_seen": 1000 * step, "train_runtime": round(at_s, 4)}
                    said |= {"train_tokens_per_second": 1000.0}
                self.tell(step, said)
            if step % self.evaluate == 0:
                took_s = self.evaluation_s(step)
                at_s += took_s
                self.tell(step, self.speed("eval", took_s, 1000, 125) | {"eval_loss": 2.0 - step / 1000})
            at_s = 0.0 if step == self.begun else at_s
        self.train_s = round(at_s + 12.0, 4)
        if self.ends:
            done = self.n - self.begun if self.newer else self.total
            said = self.speed("train", self.train_s, 8 * done, done) | {"total_flos": 1e15}
            self.tell(self.n, said | {"train_loss": losses / (done if self.newer else self.n)})

    def loss_of(self, step: int) -> float:
        return self.loss - step / self.falls

    def evaluation_s(self, step: int) -> float:
        return self.evaluate_s + step / 1000

    def speed(self, split: str, took_s: float, samples: int, steps: int) -> Entry:
        """trainer_utils.py, speed_metrics."""
        said = {f"{split}_runtime": round(took_s, 4), f"{split}_samples_per_second": round(samples / took_s, 3)}
        return said | {f"{split}_steps_per_second": round(steps / took_s, 3)}

    def tell(self, step: int, said: Entry) -> None:
        self.history.append(said | {"epoch": 3 * step / self.total, "step": step})

    @property
    def evaluated_s(self) -> float:
        """In this call of train."""
        return sum(
            self.evaluation_s(step) for step in range(self.evaluate, self.n + 1, self.evaluate) if step > self.begun
        )

    def printed(self, entry: Entry) -> str:
        """trainer_callback.py, ``on_log``."""
        said = {name: value for name, value in entry.items() if name not in ("step", "total_flos")}
        if self.newer:
            return str({name: f"{value:.4g}" if isinstance(value, float) else value for name, value in said.items()})
        return str(said | {"epoch": round(said["epoch"], 2)})

    @property
    def lines(self) -> list[str]:
        """What this call printed."""
        return [self.printed(entry) for entry in self.history if entry["step"] > self.begun]

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        state = {
            "best_metric": None, "epoch": 3.0 * self.n / self.total, "eval_steps": self.evaluate, "global_step": self.n,
            "is_hyper_param_search": False, "is_local_process_zero": True, "is_world_process_zero": True,
            "log_history": self.history, "logging_steps": self.log, "max_steps": self.total, "num_train_epochs": 3,
            "save_steps": 500, "train_batch_size": 8, "trial_name": None, "trial_params": None,
        }  # fmt: skip
        text = json.dumps(state, indent=2, sort_keys=True) + "\n"
        (folder / "trainer_state.json").write_text(text, encoding="utf-8")
