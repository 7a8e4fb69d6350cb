"""Random real files put together as one run: nothing raises but what gpudiag means to."""

from __future__ import annotations

import json
import random
import shutil
import sys
import time
from pathlib import Path

import pytest

import gpudiag as gd
from gpudiag.errors import GpudiagError
from gpudiag.readers._io.source import Source
from gpudiag.readers.identify import identify

pytestmark = [pytest.mark.corpus, pytest.mark.slow]

MIXTURES = 10
LONGEST_S = 20.0
"""Of processor time, so that a busy machine fails nothing."""


def real_files(corpus: Path) -> list[Path]:
    found = sorted(path for path in corpus.rglob("*") if path.is_file())
    return [path for path in found if path.suffix != ".md" and "REFERENCE" not in path.name]


def mixed(paths: list[Path], folder: Path, *, named: bool) -> None:
    """The files in one folder; ``named`` in a run.toml, which makes them one run however far apart they are."""
    names = [f"{number}-{path.name}" for number, path in enumerate(paths)]
    for path, name in zip(paths, names, strict=True):
        shutil.copy(path, folder / name)
    if named:
        known = [name for name in names if identify(Source.open(folder / name))]
        (folder / "run.toml").write_text(f"artifacts = {json.dumps(known)}\n", encoding="utf-8")


@pytest.mark.parametrize("named", [False, True])
def test_any_mixture_is_diagnosed_or_refused_in_a_sentence(
    named: bool, corpus: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    seed = random.SystemRandom().randrange(2**32)
    with capfd.disabled():
        print(f"\nmixtures {'named' if named else 'found'}: seed {seed}", file=sys.stderr, flush=True)
    draw = random.Random(seed)
    files = real_files(corpus)
    diagnosed = 0
    for number in range(MIXTURES // 2):
        paths = draw.sample(files, draw.randint(2, 4))
        what = f"seed {seed}, mixture {number} ({'named' if named else 'found'}): {[path.name for path in paths]}"
        folder = tmp_path / str(number)
        folder.mkdir()
        mixed(paths, folder, named=named)
        began = time.process_time()
        try:
            diagnosis = gd.diagnose(gd.load_run(folder, timezone="UTC"))
            json.dumps(diagnosis.to_dict())
            assert repr(diagnosis), what
            diagnosed += 1
        except GpudiagError as error:
            assert str(folder) in str(error) or any(path.name in str(error) for path in paths), what
        except Exception as error:
            raise AssertionError(what) from error
        assert time.process_time() - began < LONGEST_S, what
    assert diagnosed, f"seed {seed}: every mixture was refused"
