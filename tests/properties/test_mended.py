"""What random runs once found: each stays mended."""

from __future__ import annotations

import json
from dataclasses import replace

import asked
import numpy as np
import pandas as pd
import pytest
from anyrun import Part, Recipe, made, whole

import gpudiag as gd
from gpudiag._run.sound import sound
from gpudiag.errors import InputError, NotMeasurable
from gpudiag.export import perfetto
from gpudiag.forecast.pruning.replay import replay_pruner
from gpudiag.manifest import Settings
from gpudiag.measures.pruning import measure_pruning
from gpudiag.plots import draw
from gpudiag.run import Run

NAME = "real-h100/three-workers"


@pytest.mark.slow
def test_the_last_trial_on_a_shared_gpu_took_no_time() -> None:
    name = "hpo-aggressive-pruning"
    diagnosis = asked.diagnosed(made(Recipe(name, (("gpu", Part(name)), ("trials", Part(name))))))
    assert diagnosis.ledger is not None


@pytest.mark.slow
def test_more_workers_than_are_forecast() -> None:
    run = whole("healthy")
    diagnosis = asked.diagnosed(replace(run, info=replace(run.info, settings=Settings(parallel=200))))
    assert diagnosis.recommendations is not None


def test_a_sound_run_is_itself_and_one_by_hand_is_made_sound() -> None:
    run = whole(NAME)
    assert sound(run) is run
    odd = run.gpu.assign(util_pct=[-1.0, np.inf, 101.0, *run.gpu["util_pct"][3:]], power_w=np.nan)
    twice = pd.concat([run.trials, run.trials], ignore_index=True)
    steps = run.reports.assign(step=-1)
    kept = sound(replace(run, gpu=odd, trials=twice, reports=steps))
    assert kept.gpu["util_pct"].isna().sum() == 3 + run.gpu["util_pct"][3:].isna().sum() and "power_w" not in kept.gpu
    assert len(kept.trials) == len(run.trials) and kept.reports.empty
    with pytest.raises(InputError, match="there is no state 'ABORTED'"):
        sound(replace(run, trials=run.trials.assign(state="ABORTED")))


@pytest.mark.parametrize("unnamed", [2, None])
def test_samples_that_name_no_gpu_are_left_out(unnamed: int | None) -> None:
    """Once a reading that never ended, and a fault in the measures."""
    run = whole(NAME)
    gpu = run.gpu.assign(gpu=run.gpu["gpu"].where(np.arange(len(run.gpu)) >= (unnamed or len(run.gpu))))
    kept = sound(replace(run, gpu=gpu))
    assert len(kept.gpu) == (len(run.gpu) - unnamed if unnamed else 0)
    if unnamed:
        read = gd.load_run(gpu)
        assert len(read.gpu) == len(kept.gpu) and "2 x row that names no GPU" in str(read.info.inputs[0].problems[0])
    else:
        with pytest.raises(InputError, match=f"{len(gpu)} x row that names no GPU"):
            gd.load_run(gpu)


@pytest.mark.slow
def test_times_of_which_none_is_known_need_no_zone() -> None:
    run = whole(NAME)
    unknown = pd.Series(pd.NaT, index=run.trials.index, dtype="datetime64[ns]")
    made_sound = sound(replace(run, trials=run.trials.assign(end=unknown)))
    assert made_sound.trials["end"].isna().all() and made_sound.trials["end"].dtype == run.trials["end"].dtype
    asked.diagnosed(made_sound)


@pytest.mark.slow
def test_a_metric_that_one_gpu_lacks_is_no_number_in_a_trace() -> None:
    run = whole("idle-second-gpu/baseline")
    gpu = run.gpu.assign(power_w=run.gpu["power_w"].mask(run.gpu["gpu"] == "1"))
    json.dumps(perfetto.trace(asked.diagnosed(replace(run, gpu=gpu))), allow_nan=False)


@pytest.mark.slow
def test_names_of_parameters_are_neither_formulas_nor_commands() -> None:
    run = whole(NAME)
    names = ["params.$\\frac$", "params.\x1b[31mred", "params.$x$"]
    trials = run.trials.assign(state="COMPLETE", **dict.fromkeys(names, np.arange(len(run.trials)) * 1.0))
    profiles = asked.diagnosed(replace(run, trials=trials)).profiles
    assert "<svg" in draw("parallel_coordinates", profiles).svg()


@pytest.mark.slow
def test_the_name_of_a_gpu_has_two_lines() -> None:
    run = whole("tiny-batch-laptop")
    asked.diagnosed(replace(run, gpu=run.gpu.assign(gpu="a\nb"), gpus=run.gpus.assign(gpu="a\nb")))


@pytest.mark.slow
def test_a_trial_that_reports_before_its_start_is_replayed() -> None:
    run = whole("hpo-aggressive-pruning")
    trials = run.trials.assign(start=run.trials["end"], end=run.trials["start"])
    asked.readable(repr(replay_pruner(replace(run, trials=trials), "median()")))


@pytest.mark.slow
def test_a_study_may_count_batches_as_well_as_epochs() -> None:
    """A trial that is carried on reports where its study does, not at every number between."""
    run = whole("hpo-aggressive-pruning")
    batches = replace(run, reports=run.reports.assign(step=run.reports["step"] * 1_000_000))
    by_epoch, by_batch = (replay_pruner(one, "median()") for one in (run, batches))
    assert by_batch.n_trials == by_epoch.n_trials and by_batch.logged_pruned_pct == by_epoch.logged_pruned_pct


@pytest.mark.slow
def test_reports_of_trials_that_the_run_lacks_are_no_study() -> None:
    run = whole("hpo-aggressive-pruning")
    with pytest.raises(NotMeasurable):
        replay_pruner(Run(reports=run.reports, studies=run.studies), "median()")


@pytest.mark.slow
def test_a_stated_limit_of_steps_that_was_passed_is_none() -> None:
    run = whole("hpo-aggressive-pruning")
    low = replace(run, info=replace(run.info, settings=Settings(max_steps=1)))
    none = replace(run, info=replace(run.info, settings=Settings()))
    assert 0 < measure_pruning(low).budget_pct <= 100
    assert measure_pruning(low).budget_pct == measure_pruning(none).budget_pct


def test_times_that_do_not_say_their_zone_are_one_sentence() -> None:
    run = whole(NAME)
    naive = run.trials["start"].dt.tz_localize(None)
    with pytest.raises(
        InputError, match=r"table trials, column start: expected times in UTC, found datetime64.*tz_localize"
    ):
        sound(replace(run, trials=run.trials.assign(start=naive)))
    with pytest.raises(InputError, match="column time"):
        asked.diagnosed(replace(run, gpu=run.gpu.assign(time=run.gpu["time"].astype(str))))
