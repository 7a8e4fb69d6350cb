"""Whatever a folder holds, telling what a file is takes no time: no line is looked at by the square of its length."""

from __future__ import annotations

import random
import string
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gpudiag.readers import identify as identifying
from gpudiag.readers._io.source import HEAD_BYTES, Source

LIMIT_S = 2.0
"""A line looked at by the square of its length takes minutes; the slowest here takes a tenth of a second."""

WORDS = ["the", "of", "and", "to", "in", "a", "is", "that", "for", "on", "with", "as", "by", "at", "from"]
ALPHABETS = {
    "bases": "ACGT",
    "digits": string.digits,
    "letters": string.ascii_letters,
    "base64": string.ascii_letters + string.digits + "+/",
    "signs": string.punctuation,
    "blanks": " \t",
}
REPEATED = (
    *string.printable.replace("\r", ""),
    *(
        "é",
        "\ufeff",
        "\u2028",
        "\x1b[",
        "\x1b]0;",
        "a ",
        "a,",
        "1,",
        "1 ",
        '"a",',
        '""',
        "a: ",
        "a: 1 ",
        "a=1 ",
        "| ",
        "+-",
    ),
    *(
        "[[",
        '{"a":',
        '["',
        '{"a":1,',
        "<a>",
        'x{a="b",',
        "- ",
        "- a: [",
        "&a ",
        "1.",
        "1e5",
        "2026-01-01 ",
        "00:",
        "-1",
    ),
    *("gpu: NVIDIA ", "gpu 0 NVIDIA ", "gpu:0/", "cuda:0 (gpu:0)/", "gpu:0/timestamp/a (", "GPU[0]: ", "GPU[0]\t: a: "),
    *(
        "step 1 ",
        "1/2 [00:00<00:01, ",
        "Epoch [1][1/2] lr:",
        "train_inner ",
        "iter: 1 ",
        "1 it/s ",
        "epoch train_loss time",
    ),
    *("Xid (", "trial 1 gpu ", "worker 1 ", "epoch took 1", "exit code ", "DataLoader avg: 1", "GPU: 1 % | VRAM: 1/"),
    *(
        "1 MiB ",
        "1W / ",
        "N/A %, ",
        "| NVIDIA-SMI ",
        "|1",
        "DCGM_FI_A{",
        "nvidia_smi_a 1 ",
        "# gpu ",
        "number,state,",
        "=== ",
    ),
)
ONE_LINE: dict[str, Callable[[random.Random], str | bytes]] = {
    **{f"{text!r} again and again": lambda _, text=text: text * (HEAD_BYTES // len(text)) for text in REPEATED},
    **{name: lambda rng, a=letters: "".join(rng.choices(a, k=HEAD_BYTES)) for name, letters in ALPHABETS.items()},
    "words": lambda rng: " ".join(rng.choices(WORDS, k=HEAD_BYTES // 4)),
    "numbers": lambda rng: ",".join(str(rng.random()) for _ in range(HEAD_BYTES // 20)),
    "image": lambda _: b"BM" + b"\xff" * HEAD_BYTES,
    "noise": lambda rng: rng.randbytes(HEAD_BYTES),
    "short lines": lambda _: "a\nb\n" * (HEAD_BYTES // 4),
}
"""Made when its test asks: all together they are megabytes, and take a second of each worker."""


ONE_SIGN = {repr(sign) + " again and again" for sign in string.ascii_letters + string.digits}


@pytest.mark.parametrize(
    "name",
    [pytest.param(one, marks=(pytest.mark.slow, pytest.mark.many) if one in ONE_SIGN else ()) for one in ONE_LINE],
)
def test_a_pathological_file_is_told_at_once(name: str) -> None:
    content = ONE_LINE[name](random.Random(7))
    head = (content if isinstance(content, bytes) else content.encode())[:HEAD_BYTES]
    started_s = time.process_time()
    identifying.identify(Source(Path("x.dat"), head))
    assert time.process_time() - started_s < LIMIT_S
