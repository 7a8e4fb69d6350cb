"""Fixtures shared by all tests: fixed seeds, closed figures, and where the corpus of real files lies."""

from __future__ import annotations

import gc
import hashlib
import math
import os
import pickle
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from commandline import called
from hypothesis import settings

from gpudiag import faults
from gpudiag.interpreter import COLLECT_AFTER
from gpudiag.report._notebook import kernel
from gpudiag.report._notebook.grammars import put_off

put_off()  # tests import jsonschema, whose grammars of addresses take a second and more of each process
gc.set_threshold(*COLLECT_AFTER)  # a twentieth of the tests' time went into looking for circles

# Timings belong in benchmarks: a shared machine makes any deadline fail. CI repeats the same examples each time.
settings.register_profile(
    "gpudiag", deadline=None, derandomize=bool(os.environ.get("CI")), print_blob=True, max_examples=60
)
settings.load_profile("gpudiag")

ROOT = Path(__file__).resolve().parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tenth", action="store_true", help="of slow tests that are marked many, a tenth of the cases")


def pytest_configure(config: pytest.Config) -> None:
    """Reports of the samples are made once for all processes of a session."""
    if "GPUDIAG_TEST_REPORTS" not in os.environ:
        os.environ["GPUDIAG_TEST_REPORTS"] = folder = tempfile.mkdtemp(prefix="gpudiag-reports-")
        config.add_cleanup(lambda: (os.environ.pop("GPUDIAG_TEST_REPORTS"), shutil.rmtree(folder)))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """``make test-slow`` does not import the files, most of them, in which no test is marked slow."""
    if config.getoption("markexpr") != "slow" or collection_path.suffix != ".py":
        return None
    return None if "mark.slow" in collection_path.read_text(encoding="utf-8") else True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """``--tenth``: of a slow test that is marked ``many`` a tenth of the cases, the same ones each time."""
    if not config.getoption("tenth"):
        return
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("many") and item.get_closest_marker("slow"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    left = set[pytest.Item]()
    for several in cases.values():
        several.sort(key=lambda item: hashlib.sha256(item.nodeid.encode()).digest())
        left.update(several[math.ceil(len(several) / 10) :])
    config.hook.pytest_deselected(items=sorted(left, key=items.index))
    items[:] = [item for item in items if item not in left]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Thousands of tests and of modules stay to the end: the garbage collector need not look through them again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _strict() -> Iterator[None]:
    """A fault of gpudiag, or a table that is not as declared, fails the test; tests of ERROR take strict(False)."""
    with faults.strict():
        yield


@pytest.fixture(scope="session", autouse=True)
def _phases_once() -> Iterator[None]:
    """The phases of equal timelines are worked out once a session: hundreds of tests look at the same few runs.

    They are handed out unwritable, so that no test can change them for another. tests/measures/test_phases.py asks
    for them directly, and gets them made.
    """
    from gpudiag.measures._time import gpu_time

    find, kept = gpu_time.find_phases, {}

    def found(gpus: list[object]) -> list[object]:
        key = hashlib.sha256(pickle.dumps(gpus)).digest()
        if key not in kept:
            kept[key] = find(gpus)  # type: ignore[arg-type]
            for phases in filter(None, kept[key]):
                for array in vars(phases).values():
                    if isinstance(array, np.ndarray):
                        array.setflags(write=False)
        return list(kept[key])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gpu_time, "find_phases", found)
        yield


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def samples() -> Path:
    return ROOT / "data" / "samples"


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The corpus of real files; its absence skips, or fails with GPUDIAG_REQUIRE_CORPUS=1."""
    path = Path(os.environ.get("GPUDIAG_CORPUS", ROOT.parent / "shared" / "corpus"))
    if not path.is_dir():
        if os.environ.get("GPUDIAG_REQUIRE_CORPUS") == "1":
            pytest.fail(f"the corpus is required but absent at {path}")
        pytest.skip("no corpus of real files (set GPUDIAG_CORPUS)")
    return path


@pytest.fixture(autouse=True)
def _seeded() -> None:
    import numpy as np

    np.random.seed(0)  # noqa: NPY002 - libraries under test may use the global generator


@pytest.fixture(autouse=True)
def _figures_closed() -> Iterator[None]:
    yield
    import sys

    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture(scope="session")
def _kernel() -> Iterator[kernel._Kept]:
    kept = kernel._Kept()
    yield kept
    kept.end()


@pytest.fixture
def kept_kernel(_kernel: kernel._Kept) -> Iterator[None]:
    """Reports of our notebooks by this test share one kernel with those of other tests, as in a batch: starting one
    takes longer than most reports. For tests that give no relative path: the kernel works in the folder of another.
    """
    token = kernel._KEPT.set(_kernel)
    yield
    kernel._KEPT.reset(token)


@pytest.fixture
def gpudiag(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., tuple[int, str, str]]:
    """Run the command line in an empty folder; returns (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object) -> tuple[int, str, str]:
        code = called(monkeypatch, *arguments)
        out = capsys.readouterr()
        return code, out.out, out.err

    return call
