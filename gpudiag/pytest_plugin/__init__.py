"""The pytest plugin: budgets of the GPU as a marker, and runs to assert on as a fixture.

pytest loads it in every session of everybody who has gpudiag installed. So it imports nothing but pytest, and what it
needs of gpudiag only where a test asks for it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from gpudiag.pytest_plugin.budgeted_test import BudgetedTest
    from gpudiag.pytest_plugin.judged_run import JudgedRun

MARKER = "gpu_budget"
NO_GPU = ("skip", "fail")
PROPERTY = "gpudiag"
"""User property of a report, and of JUnit XML, that says what the GPU did while the test ran."""

_test: pytest.StashKey[BudgetedTest] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("gpudiag_no_gpu", "a test with a GPU budget on a machine without a GPU: skip or fail", default="skip")
    parser.getgroup("gpudiag").addoption(
        "--gpudiag-recordings", metavar="DIR", default=None, help="keep what was recorded of tests with a GPU budget"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{MARKER}(idle_pct, utilization_pct, memory_mib, gpus, interval_s): record the GPU while the test runs; fail "
        "where it was idle for longer, used less or took more memory than that",
    )
    given = config.getini("gpudiag_no_gpu")
    if given not in NO_GPU:
        raise pytest.UsageError(f"gpudiag_no_gpu must be skip or fail, but got '{given}'.")


@pytest.fixture(scope="session")
def gpudiag_run() -> Callable[..., JudgedRun]:
    """Diagnose a recorded run: ``gpudiag_run("runs/nightly").gpu.utilization_pct``. Takes a folder, or several files of
    one run, and the options of :func:`gpudiag.load_run`.
    """
    from gpudiag.pytest_plugin.judged_run import judged_run

    return judged_run


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Before any fixture, which might need the GPU that is not there, and after ``skipif``."""
    if item.get_closest_marker(MARKER) is not None:
        from gpudiag.pytest_plugin.budgeted_test import prepared

        item.stash[_test] = prepared(item, MARKER, PROPERTY)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    test = item.stash.get(_test, None)
    if test is None:
        return (yield)
    test.begin()
    try:
        result = yield
    except (KeyboardInterrupt, SystemExit, pytest.skip.Exception):
        test.stop()
        raise
    except BaseException:
        test.end()
        raise
    test.end()
    test.check()
    return result


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """What a comparison with a number or the findings of a run says where it fails."""
    made = sys.modules.get("gpudiag.pytest_plugin.judged_run")
    return None if made is None else made.explained(op, left, right)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    lines = list(_told(terminalreporter.stats))
    if lines:
        terminalreporter.section("GPU budgets")
        for line in lines:
            terminalreporter.write_line(line)


def _told(stats: dict[str, list[Any]]) -> Iterator[str]:
    """One line a test that has a budget; reports of xdist's workers carry it as well."""
    for report in (one for reports in stats.values() for one in reports if isinstance(one, pytest.TestReport)):
        if report.when != "teardown":
            yield from (f"{report.nodeid}: {said}" for name, said in report.user_properties if name == PROPERTY)
