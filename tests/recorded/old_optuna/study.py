"""Run by an old Optuna in a venv of its own: a small study with a real pruner, and what that Optuna makes of it.

python old_optuna_study.py URL FRAME.csv REPORTS.json
"""

import json
import sys
from pathlib import Path

import optuna
from optuna.pruners import MedianPruner
from optuna.samplers import RandomSampler


def objective(trial):
    rate = trial.suggest_float("lr", 1e-5, 1e-1, log=True)
    depth = trial.suggest_int("depth", 1, 9)
    kind = trial.suggest_categorical("optimizer", ("adam", "sgd", None, 3, 2.5, True))
    if kind == "sgd":
        trial.suggest_float("momentum", 0.0, 1.0)
    trial.set_user_attr("seconds", rate / 3)
    if trial.number == 7:
        raise ValueError("on purpose")
    for step in range(5):
        value = depth / (step + 1) + rate
        # MySQL has no infinity, and Optuna 2 no other way to store one.
        infinite = (trial.number, step) == (3, 0) and not url.startswith("mysql")
        trial.report(float("inf") if infinite else value, step)
        if trial.should_prune():
            raise optuna.TrialPruned
    return value


url, frame, reports = sys.argv[1:]
optuna.logging.set_verbosity(optuna.logging.ERROR)
pruner = MedianPruner(n_startup_trials=4, n_warmup_steps=1)
study = optuna.create_study(
    study_name="old", storage=url, direction="maximize", sampler=RandomSampler(seed=5), pruner=pruner
)
study.optimize(objective, n_trials=14, catch=(ValueError,))
study = optuna.load_study(study_name="old", storage=url)
study.trials_dataframe().to_csv(frame, index=False)
steps = [[trial.number, *pair] for trial in study.trials for pair in trial.intermediate_values.items()]
Path(reports).write_text(json.dumps(steps))
