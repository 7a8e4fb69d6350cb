"""The pytest plugin in sessions of its own: budgets, what is not assessed, the fixture, and what it costs others."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from pathlib import Path
from xml.etree import ElementTree

import pytest
from fakegpu import FakeGpus, install

from gpudiag.pytest_plugin.judged_run import judged_run
from gpudiag.readers.telemetry import read_telemetry
from gpudiag.record import visible_gpu
from gpudiag.record.readings import Device

pytest_plugins = ("pytester",)

HERE = Path(__file__).resolve().parent
SAMPLES = HERE.parent.parent / "data" / "samples"
INSTALLED = any(one.value == "gpudiag.pytest_plugin" for one in entry_points(group="pytest11"))
LOADED = [] if INSTALLED else ["-p", "gpudiag.pytest_plugin"]
"""A development environment may be older than the entry point."""

Machine = Callable[[FakeGpus], None]
Session = Callable[..., pytest.RunResult]


@pytest.fixture(scope="module", autouse=True)
def _modules_stay() -> Iterator[None]:
    """What a session within this one imports stays imported, but for its tests: pytester would unload it, and classes
    of gpudiag and of libraries would then exist twice in the tests that come after.
    """

    def without_tests(self: object) -> None:
        sys.modules.pop("test_it", None)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("_pytest.pytester.SysModulesSnapshot.restore", without_tests)
        yield


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    def installed(gpus: FakeGpus) -> None:
        for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
            monkeypatch.setenv(name, "")  # so that it is restored
        install(gpus, monkeypatch.setattr)

    return installed


@pytest.fixture
def session(pytester: pytest.Pytester) -> Session:
    def run(text: str, *arguments: str) -> pytest.RunResult:
        pytester.makepyfile(test_it=text)
        return pytester.runpytest_inprocess(*LOADED, "-p", "no:cacheprovider", "-rs", "--strict-markers", *arguments)

    return run


def budgeted(*budgets: str, seconds: float = 0.2, interval_s: float = 0.01, body: str = "") -> str:
    """A module with a test of that length for each budget, test_0 and so on."""
    tests = (
        f"@pytest.mark.gpu_budget({budget}, interval_s={interval_s})\n"
        f"def test_{n}():\n    time.sleep({seconds})\n    {body}\n"
        for n, budget in enumerate(budgets)
    )
    return "import time, pytest\n" + "".join(tests)


def told(result: pytest.RunResult) -> str:
    """The lines of the plugin's section."""
    text = result.stdout.str()
    assert "= GPU budgets =" in text, text
    return text.partition("= GPU budgets =")[2].partition("\n")[2].partition("\n===")[0].strip()


@pytest.mark.slow
def test_a_budget_that_is_met_passes_and_is_told(machine: Machine, session: Session) -> None:
    machine(FakeGpus())
    result = session(budgeted("utilization_pct=60, idle_pct=20, memory_mib=9000"))
    result.assert_outcomes(passed=1)
    assert told(result).startswith(
        "test_it.py::test_0: met: utilization 85 % (at least 60 %), idle 0 % (at most 20 %), "
        "memory peak 8.0 GiB (at most 8.8 GiB); "
    )


@pytest.mark.slow
def test_a_budget_that_is_not_met_fails_in_one_sentence(machine: Machine, session: Session) -> None:
    machine(FakeGpus(util_pct=5.0))
    result = session(
        budgeted("utilization_pct=60", "idle_pct=20", "memory_mib=1024, utilization_pct=2"), "--gpudiag-recordings=kept"
    )
    result.assert_outcomes(failed=3)
    for said in (
        "utilization 5 % (at least 60 %)",
        "idle 100 % (at most 20 %)",
        "memory peak 8.0 GiB (at most 1.0 GiB)",
    ):
        result.stdout.fnmatch_lines([f"The GPU budget is not met: {said}. Recorded in kept*test_it.py-test_?-*.csv."])
        assert f": not met: {said}; " in told(result)
    assert "; met: utilization 5 % (at least 2 %); " in told(result)
    assert "Traceback" not in result.stdout.str() and "budgeted_test.py" not in result.stdout.str()


@pytest.mark.slow
def test_what_the_data_do_not_determine_is_not_assessed_and_said(machine: Machine, session: Session) -> None:
    machine(FakeGpus(util_pct=None))
    result = session(budgeted("utilization_pct=60, memory_mib=9000"))
    result.assert_outcomes(passed=1)
    assert "not assessed: utilization (No GPU reports utilization" in told(result)
    assert "met: memory peak 8.0 GiB" in told(result)


@pytest.mark.slow
@pytest.mark.parametrize("visible", ["", "GPU-1" + "ab" * 8])
def test_the_gpus_that_the_test_names_or_sees_are_recorded(
    machine: Machine, session: Session, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, visible: str
) -> None:
    machine(FakeGpus(n=2))
    if visible:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    text = budgeted("idle_pct=20", "idle_pct=20, gpus=1", "idle_pct=20, gpus=('0', '1')", seconds=0.05)
    session(text, "--gpudiag-recordings=kept").assert_outcomes(passed=3)
    kept = sorted((pytester.path / "kept").iterdir())
    assert [path.name[:18] for path in kept] == [f"test_it.py-test_{n}-" for n in range(3)]
    seen = [set(read_telemetry(path).gpu["gpu"]) for path in kept]
    assert seen == [{"1"} if visible else {"0", "1"}, {"1"}, {"0", "1"}]


@pytest.mark.slow
@pytest.mark.parametrize(("mask", "seen"), [("0", {"0"}), ("1,0", {"0", "1"}), ("1,7,0", {"1"})])
def test_others_gpus_are_not_recorded(
    machine: Machine, session: Session, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, mask: str,
    seen: set[str],
) -> None:  # fmt: skip
    machine(FakeGpus(n=3))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", mask)
    session(budgeted("idle_pct=20", seconds=0.05), "--gpudiag-recordings=kept").assert_outcomes(passed=1)
    (kept,) = (pytester.path / "kept").iterdir()
    assert set(read_telemetry(kept).gpu["gpu"]) == seen


@pytest.mark.parametrize("mask", ["", "-1"])
def test_a_process_that_sees_no_gpu_is_as_one_without(
    machine: Machine, session: Session, monkeypatch: pytest.MonkeyPatch, mask: str
) -> None:
    machine(FakeGpus(n=2))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", mask)
    result = session(budgeted("idle_pct=20"))
    result.assert_outcomes(skipped=1)
    assert "CUDA_VISIBLE_DEVICES leaves no GPU to this test." in result.stdout.str()


def test_an_index_that_tells_no_board_fails_and_says_what_to_do(
    machine: Machine, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(FakeGpus())
    boards = [Device("0", "GPU-a", "NVIDIA A10"), Device("1", "GPU-b", "NVIDIA H100")]
    monkeypatch.setattr(visible_gpu, "known_devices", lambda: (None, tuple(boards)))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    result = session(budgeted("idle_pct=20"))
    result.assert_outcomes(failed=1)
    assert "set CUDA_DEVICE_ORDER=PCI_BUS_ID" in result.stdout.str()
    assert visible_gpu.visible_gpus() is None
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    assert visible_gpu.visible_gpus() == ("GPU-a",)


def test_an_interval_of_nothing_is_refused_in_a_sentence(machine: Machine, session: Session) -> None:
    machine(FakeGpus())
    said = session(
        "import pytest\n@pytest.mark.gpu_budget(idle_pct=20, interval_s=0)\ndef test_it(): pass"
    ).stdout.str()
    assert (
        "gpudiag: the interval must lie between 0.01" in said
        and "Traceback" not in said
        and "During handling" not in said
    )


@pytest.mark.parametrize(("ini", "outcome"), [("", "skipped"), ("skip", "skipped"), ("fail", "errors")])
def test_without_a_gpu_a_test_is_skipped_or_fails_before_its_fixtures(
    machine: Machine, session: Session, pytester: pytest.Pytester, ini: str, outcome: str
) -> None:
    machine(FakeGpus(driver=False))
    if ini:
        pytester.makeini(f"[pytest]\ngpudiag_no_gpu = {ini}\n")
    text = "import pytest\n@pytest.fixture\ndef cuda(): raise RuntimeError('no CUDA')\n" + budgeted("idle_pct=20")
    result = session(text.replace("test_0()", "test_0(cuda)"))
    result.assert_outcomes(**{outcome: 1})
    assert "gpudiag: no NVIDIA driver on this machine: Driver Not Loaded." in result.stdout.str()
    assert "no CUDA" not in result.stdout.str()
    assert told(result).startswith("test_it.py::test_0: not recorded: no NVIDIA driver")


def test_a_test_that_is_skipped_anyway_asks_for_no_gpu(
    machine: Machine, session: Session, pytester: pytest.Pytester
) -> None:
    machine(FakeGpus(driver=False))
    pytester.makeini("[pytest]\ngpudiag_no_gpu = fail\n")
    result = session(budgeted("idle_pct=20").replace("def test", "@pytest.mark.skipif(True, reason='mine')\ndef test"))
    result.assert_outcomes(skipped=1)


def test_a_budget_that_makes_no_sense_fails_by_name(machine: Machine, session: Session) -> None:
    machine(FakeGpus())
    wrong = {
        "idle_pc=20": "a GPU budget has no 'idle_pc'; did you mean 'idle_pct'?",
        "idle_pct=200": "idle_pct of a GPU budget must be a number of 0 to 100, but got 200.",
        "memory_mib='much'": "memory_mib of a GPU budget must be a number of 0 or more, but got 'much'.",
        "gpus=7.5": "gpus must be indices or uuids such as ('0', '1'), but got 7.5.",
        "20": "a GPU budget is stated by name, as in gpu_budget(idle_pct=20), but got 20.",
    }
    result = session(budgeted(*wrong, "gpus='9'", seconds=0.01))
    result.assert_outcomes(errors=len(wrong), failed=1)  # which GPUs there are is known when the test begins
    for said in wrong.values():
        assert f"gpudiag: {said}" in result.stdout.str()
    result.stdout.fnmatch_lines(["gpudiag: *9*0*"])
    assert "INTERNALERROR" not in result.stdout.str()


def test_a_wrong_setting_is_refused_at_once(pytester: pytest.Pytester, session: Session) -> None:
    pytester.makeini("[pytest]\ngpudiag_no_gpu = sometimes\n")
    result = session("def test_it(): pass")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "gpudiag_no_gpu must be skip or fail, but got 'sometimes'." in result.stderr.str()


@pytest.mark.slow
def test_a_test_that_fails_or_skips_by_itself_says_so_itself(machine: Machine, session: Session) -> None:
    machine(FakeGpus(util_pct=5.0))
    body = "assert 1 == 2" + "\n" + "@pytest.mark.gpu_budget(idle_pct=20)\ndef test_skips(): pytest.skip('mine')"
    result = session(budgeted("idle_pct=20", body=body))
    result.assert_outcomes(failed=1, skipped=1)
    assert "assert 1 == 2" in result.stdout.str() and "The GPU budget" not in result.stdout.str()
    assert told(result).count("\n") == 0 and "test_0: not met: idle 100 %" in told(result)


@pytest.mark.slow
def test_the_nearest_marker_counts_and_others_add_to_it(machine: Machine, session: Session) -> None:
    machine(FakeGpus(util_pct=50.0))
    of_all = "pytestmark = pytest.mark.gpu_budget(utilization_pct=90, memory_mib=9000)\n"
    result = session(budgeted("utilization_pct=40") + of_all)
    result.assert_outcomes(passed=1)
    assert "utilization 50 % (at least 40 %)" in told(result) and "memory peak 8.0 GiB" in told(result)


@pytest.mark.slow
def test_junit_has_the_line_as_a_property(machine: Machine, session: Session, pytester: pytest.Pytester) -> None:
    machine(FakeGpus())
    session(budgeted("idle_pct=20"), "--junitxml=out.xml", "-o", "junit_family=xunit1")
    (made,) = ElementTree.parse(pytester.path / "out.xml").iter("property")
    assert made.attrib["name"] == "gpudiag" and made.attrib["value"].startswith("met: idle 0 %")


ASSERTIONS = f"""
import pytest

@pytest.fixture(scope="module")
def d(gpudiag_run):
    return gpudiag_run({str(SAMPLES / "tiny-batch-laptop")!r})

def test_low(d):
    assert d.gpu.utilization_pct > 60

def test_high(d):
    assert 1 > d.memory.peak_pct

def test_good(d):
    assert d.gpu.utilization_pct < 20 and d.gpu.idle_pct < 100 and 0 < d.memory.peak_mib < 1e6

def test_nothing_found(d):
    assert d.findings("note") == []

def test_not_bad(d):
    assert not d.findings("warning")

def test_in(d):
    assert "memory-headroom" not in d.findings()

def test_open(d):
    assert "io-wait" in d.not_assessed
    assert "io-wait" not in d.findings()

def test_misspelt(d):
    assert "memory-haedroom" not in d.findings()
"""


@pytest.mark.slow
def test_assertions_on_a_run_fail_with_its_headline(machine: Machine, session: Session) -> None:
    result = session(ASSERTIONS)
    result.assert_outcomes(passed=2, failed=6)
    headline = judged_run(SAMPLES / "tiny-batch-laptop").headline
    assert headline.startswith("The GPU was poorly used (11 %).")
    result.stdout.fnmatch_lines(
        [
            "E *assert gpu.utilization_pct 11 % > 60",
            f"E *tiny-batch-laptop: {headline[:60]}*",
            "E *assert 1 > memory.peak_pct *%",
            "E *assert <3 findings> == [[]]",
            f"E *tiny-batch-laptop: {headline[:60]}*",
            "E *note gpu-low-utilization: *",
            "E *assert 'memory-headroom' not in [[]note gpu-low-utilization*",
            "E *NotMeasurable: io-wait was not assessed. *",
            "E *ConfigError: there is no check 'memory-haedroom'; did you mean 'memory-headroom'?",
        ]
    )


@pytest.mark.slow
def test_reports_of_xdist_workers_carry_the_lines(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        f"import os, sys\nsys.path.insert(0, {str(HERE)!r})\n"
        "if 'PYTEST_XDIST_WORKER' in os.environ:\n"
        "    import fakegpu\n    fakegpu.install(fakegpu.FakeGpus(util_pct=5.0))\n"
    )
    pytester.makepyfile(test_it=budgeted("idle_pct=20", "memory_mib=9000"), test_c="def test_plain(): pass")
    result = pytester.runpytest_subprocess(*LOADED, "-n", "1", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=2, failed=1)
    lines = sorted(told(result).splitlines())
    assert len(lines) == 2
    assert lines[0].startswith("test_it.py::test_0: not met: idle 100 %")
    assert lines[1].startswith("test_it.py::test_1: met: memory peak 8.0 GiB")


@pytest.mark.slow
def test_a_session_that_does_not_ask_imports_nothing(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_loaded(pytestconfig):
            assert "gpudiag.pytest_plugin" in sys.modules and pytestconfig.getini("gpudiag_no_gpu") == "skip"
            ours = {name for name in sys.modules if name.partition(".")[0] == "gpudiag"}
            heavy = {"pandas", "polars", "numpy", "scipy", "matplotlib", "optuna", "pyarrow", "pydantic", "psutil"}
            assert ours == {"gpudiag", "gpudiag.pytest_plugin"} and not heavy & set(sys.modules)

        def test_that_fails():
            assert 1.0 == 2.0
        """
    )
    result = pytester.runpytest_subprocess(*LOADED, "-W", "error", "--strict-markers", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, failed=1)
    assert "GPU budgets" not in result.stdout.str() and "assert 1.0 == 2.0" in result.stdout.str()


@pytest.mark.slow
def test_modules_that_are_skipped_or_fail_to_load_end_no_session(
    machine: Machine, session: Session, pytester: pytest.Pytester
) -> None:
    """What pytest counts of them are no reports of tests."""
    machine(FakeGpus())
    pytester.makepyfile(
        test_left_out="import pytest\npytest.importorskip('nothing_of_this_name')",
        test_broken="raise RuntimeError('mine')",
    )
    result = session(budgeted("idle_pct=20"), "--continue-on-collection-errors")
    result.assert_outcomes(passed=1, skipped=1, errors=1)
    assert len(told(result).splitlines()) == 1 and "INTERNALERROR" not in result.stdout.str() + result.stderr.str()


def test_the_entry_point_is_declared(root: Path) -> None:
    import tomllib

    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"gpudiag": "gpudiag.pytest_plugin"}
