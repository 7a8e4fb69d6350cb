"""A process that diagnoses the runs of many fleets: to start one takes longer than most of the runs in these tests."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module

import pytest

from gpudiag.fleets.outcomes import executor_of
from gpudiag.fleets.worker import close_all


@pytest.fixture(scope="session")
def _one_thread() -> Iterator[Executor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool
        close_all()


@pytest.fixture(scope="module")
def warm(_one_thread: Executor) -> Iterator[None]:
    """Fleets to which no executor is given leave their process to the next one. How the processes of a fleet begin and
    end is tested without it, in test_cli_fleet.py and test_fleet_worker.py.
    """

    @contextmanager
    def kept(given: Executor | None, jobs: int) -> Iterator[Executor]:
        if given is None:
            yield _one_thread
        else:
            with executor_of(given, jobs) as pool:
                yield pool

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(import_module("gpudiag.fleets.fleet"), "executor_of", kept)
        yield
