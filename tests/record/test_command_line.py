"""Secrets on a command line do not reach the header of a recording."""

from __future__ import annotations

import shlex

import pytest

from gpudiag.record.command_line import shown


@pytest.mark.parametrize(
    "argument",
    ["--api-key hunter2", "--api-key=hunter2", "--wandb_token hunter2", "WANDB_API_KEY=hunter2", "--password hunter2",
     "hydra.secret=hunter2", "--db mysql://me:hunter2@db/x", "--db sqlite:///x?password=hunter2", "-token hunter2",
     "--storage=postgresql://me:hunter2@db/x"],
)  # fmt: skip
def test_a_secret_is_hidden_and_the_rest_is_told(argument: str) -> None:
    text = shown(["python", "train.py", *argument.split(), "--lr", "0.1"])
    assert "hunter2" not in text and "***" in text
    assert text.startswith("python train.py ") and text.endswith(" --lr 0.1")
    assert argument.split()[0].split("=")[0] in text


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("t --api-key hunter2 --db pg://u:hunter3@h/x --token=hunter4 --lr 1",
         "t --api-key *** --db pg://u:***@h/x --token=*** --lr 1"),
        ("export WANDB_API_KEY='hunter2 x'; cd a && t -password \"hunter3\" | tee b",
         "export WANDB_API_KEY=***; cd a && t -password *** | tee b"),
        ("curl -H 'Authorization: Bearer hunter2' a@b", "curl -H 'Authorization: ***' a@b"),
        ("import w; w.login(key='hunter2', n=1)", "import w; w.login(key=***, n=1)"),
        ('{"api_key": "hunter2", "lr": 0.1}', '{"api_key": ***, "lr": 0.1}'),
        ("docker run --env=HF_TOKEN=hunter2 image", "docker run --env=HF_TOKEN=*** image"),
        ("t --tokenizer gpt2 --max-tokens 5 --token --verbose --monkey=1", None),
    ],
)  # fmt: skip
def test_a_secret_within_an_argument_is_hidden(line: str, expected: str | None) -> None:
    assert shlex.split(shown(["bash", "-c", line]))[2] == (expected or line)
    assert "hunter" not in shown(["docker", "--env=HF_TOKEN=hunter2", '{"token":"hunter3"}', "pg://u:hunt er@h"])


@pytest.mark.parametrize(
    "command",
    [["python", "train.py", "--tokenizer", "gpt2", "--max-tokens", "512", "--keys", "a"], ["bash", "-c", "a b | c"],
     ["python", "-m", "x", "--monkey=1", "--token", "--verbose"], ["curl", "https://example.org/a?page=2"]],
)  # fmt: skip
def test_what_is_no_secret_stays(command: list[str]) -> None:
    assert "***" not in shown(command)
    assert all(word in shown(command) for argument in command for word in argument.split())
