"""A log stays one, whatever its program prints besides; a document that quotes a log is none."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import gpudiag as gd
from gpudiag.readers._io.source import Source
from gpudiag.readers.identify import identify

BARS = [f"  {n}%|▏         | {n}/100 [00:{n:02d}<01:39,  1.00s/it]" for n in range(1, 31)]
STAMPED = [f"2026-03-02 09:00:{n:02d} step {n}/100 loss 0.5" for n in range(1, 31)]
PRINTED = {
    "settings of Python": ["{'lr': 1e-3}"],
    "many settings of Python": ["{'data': {'batch_size': 1},", " 'devices': 1}"],
    "settings in JSON": ['{"lr": 0.001}'],
    "pretty JSON": ["{", '  "model": "gpt2",', '  "layers": [', '    "a",', '    "b"', "  ]", "}"],
    "a list": ['["a", "b"]'],
    "messages": ['[{"name": "x"}]'],
    "a comment": ["# params: 124,439,808"],
    "a heading": ["##### config #####"],
    "its script": ["#!/bin/bash", "#SBATCH --gres=gpu:1", "srun python train.py"],
    "a warning": ["<frozen runpy>:128: RuntimeWarning: 'x' found in sys.modules"],
    "classes": ["class 0: 0.81 0.92", "class weights: [0.1, 0.9]"],
    "words": ["from scratch: True", "from epoch 1 on the rate falls", "import time 3.2 s", "def val: 3"],
    "a fence": ["Prompt:", "```", "x=1", "```"],
    "a fence cut": ["Prompt:", "```python", "x = 1"],
    "code": ["import os", "from x import y", "def add(a, b):", "    return a + b", "class Net(nn.Module):"],
    "tokens": ["<s>", "<pad>", "</s>"],
}


def reader_of(folder: Path, name: str, lines: list[str]) -> str | None:
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = identify(Source.open(path))
    return found[1].name if found else None


@pytest.mark.parametrize("printed", PRINTED.values(), ids=list(PRINTED))
@pytest.mark.parametrize("steps", [BARS, STAMPED], ids=["bars", "stamped"])
def test_a_log_is_one_whatever_is_printed(tmp_path: Path, printed: list[str], steps: list[str]) -> None:
    for number, lines in enumerate((printed + steps, steps[:15] + printed + steps[15:], steps + printed)):
        for suffix in ("log", "txt"):
            assert reader_of(tmp_path, f"{number}.{suffix}", lines) == "training-log", (number, suffix)


def test_what_a_program_printed_as_it_died_is_a_log_below_its_settings(tmp_path: Path) -> None:
    died = ["Traceback (most recent call last):", '  File "train.py", line 8', "RuntimeError: CUDA out of memory"]
    for printed in PRINTED.values():
        assert reader_of(tmp_path, "slurm-7.out", printed + died) == "training-log", printed
    assert reader_of(tmp_path, "notes.txt", ["# What happened", *died]) is None


def test_lines_with_timestamps_are_of_a_log(tmp_path: Path) -> None:
    lines = [f"2026-03-02 09:00:{n:02d} INFO fine" for n in range(10)]
    failed = "2026-03-02 09:01:00 ERROR CUDA out of memory"
    assert reader_of(tmp_path, "a.txt", ["# params: 124,439,808", *lines, failed]) == "training-log"


QUOTED = {
    "guide.txt": ["# Guide", "", "It prints:", "```", *BARS, "```", "and", "```", *STAMPED, "```"],
    "README.md": ["# Guide", "", *BARS],
    "train": ['"""Train.', "", *BARS[:3], '"""', "import os", "import sys", "from a import b", "def f(x):", "    pass"],
    "train.py": ["import os", '"""', *STAMPED, '"""'],
    "comments": ["import os", *(f"# {line}" for line in STAMPED)],
    "script": ["#!/bin/sh", *(f"# {line}" for line in STAMPED), "grep 'CUDA out of memory' x"],
    "notebook": json.dumps({"cells": [{"outputs": [{"text": [f"{line}\n" for line in BARS]}]}]}, indent=1).split("\n"),
    "lines": [json.dumps({"log": line}) for line in STAMPED],
    "page": ["<html>", "<body>", "<p>CUDA out of memory</p>", "<pre>", *STAMPED[:3], "</pre>", "</body>", "</html>"],
}


@pytest.mark.parametrize("name", QUOTED)
def test_a_document_that_quotes_a_log_is_none(tmp_path: Path, name: str) -> None:
    assert reader_of(tmp_path, name, QUOTED[name]) is None


def test_a_log_that_docker_keeps_as_json_tells_what_the_log_does(tmp_path: Path) -> None:
    said = [*(line[20:] for line in STAMPED), "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"]
    stamps = [f"2026-03-02T09:00:{n:02d}.5" for n in range(1, 32)]
    forms: dict[str, Callable[[str, str], str]] = {
        "text": lambda stamp, line: f"{stamp}Z {line}",
        "docker": lambda stamp, line: json.dumps({"log": f"\r{line}\n", "stream": "stdout", "time": f"{stamp}00123Z"}),
        "structured": lambda stamp, line: json.dumps({"timestamp": f"{stamp}Z", "level": "INFO", "message": line}),
    }
    runs = []
    for name, form in forms.items():
        (tmp_path / name).write_text("".join(f"{form(*one)}\n" for one in zip(stamps, said, strict=True)))
        runs.append(gd.load_run(tmp_path / name))
    text, *others = runs
    assert len(text.steps) == 30 and text.events["kind"].tolist() == ["oom"]
    for other in others:
        pd.testing.assert_frame_equal(
            other.steps.drop(columns="path").assign(time=text.steps["time"]), text.steps.drop(columns="path")
        )
        assert (other.steps["time"] - text.steps["time"]).abs().max() < pd.Timedelta("1ms")
        assert other.events["kind"].tolist() == ["oom"]
