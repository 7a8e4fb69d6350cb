"""A test with a GPU budget: recorded while it runs, measured when it has ended."""

from __future__ import annotations

import re
import shutil
import time
import warnings
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from gpudiag.diagnosis import diagnose
from gpudiag.errors import ConfigError, GpudiagError
from gpudiag.load import load_run
from gpudiag.pytest_plugin.budget import Budget, BudgetCheck, check
from gpudiag.pytest_plugin.judged_run import JudgedRun
from gpudiag.record import nvml
from gpudiag.record.readings import NoDriver
from gpudiag.record.recorder import Recorder
from gpudiag.record.visible_gpu import visible_gpu, visible_gpus

_no_gpu: pytest.StashKey[str] = pytest.StashKey()


class BudgetedTest:
    """One test: ``begin`` before it, ``end`` or ``stop`` after it, and ``check`` where it passed."""

    def __init__(self, item: pytest.Item, budget: Budget, property_: str) -> None:
        self._item, self._budget, self._property = item, budget, property_
        self._checked, self._kept = BudgetCheck(), ""
        self._began_s = 0.0

    def begin(self) -> None:
        """Start to record the GPUs that the test sees."""
        self._folder = TemporaryDirectory(prefix="gpudiag-")
        try:
            self._recorder = Recorder(
                Path(self._folder.name) / "gpu.csv",
                interval_s=self._budget.interval_s,
                gpus=self._budget.gpus or _seen(),
                warn=False,
            ).start()
        except ConfigError as error:
            self._folder.cleanup()
            raise pytest.fail.Exception(f"gpudiag: {error}", pytrace=False) from None
        self._began_s = time.monotonic()

    def stop(self) -> None:
        """Stop, and say nothing: nobody waits for measures, or nothing was tested."""
        self._recorder.stop()
        self._folder.cleanup()

    def end(self) -> None:
        """Stop, measure, and note the line for the summary."""
        seconds = time.monotonic() - self._began_s
        try:
            self._recorder.stop()
            self._keep()
            said = self._measured(seconds)
        finally:
            self._folder.cleanup()
        note(self._item, self._property, said)

    def check(self) -> None:
        """Fail the test where its budget is not met."""
        if self._checked.exceeded:
            said = ", ".join(self._checked.exceeded)
            recorded = f" Recorded in {self._kept}." if self._kept else ""
            pytest.fail(f"The GPU budget is not met: {said}.{recorded}", pytrace=False)

    def _measured(self, seconds: float) -> str:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of libraries: this is nobody's test of them
                run = JudgedRun(diagnose(load_run(self._recorder.path), rules=()))
                self._checked = check(self._budget, run, seconds)
        except GpudiagError as error:
            return f"not assessed: {error}"
        return self._checked.line(seconds)

    def _keep(self) -> None:
        folder = self._item.config.getoption("--gpudiag-recordings")
        if folder and self._recorder.path.is_file():
            Path(folder).mkdir(parents=True, exist_ok=True)
            self._kept = str(Path(folder) / recording_name(self._item.nodeid))
            shutil.copyfile(self._recorder.path, self._kept)


def prepared(item: pytest.Item, marker: str, property_: str) -> BudgetedTest:
    """The test, ready to begin. A budget that makes no sense fails it; without a GPU it is skipped, or fails too."""
    try:
        budget = Budget.of(_given(item, marker))
    except ConfigError as error:
        raise pytest.fail.Exception(f"gpudiag: {error}", pytrace=False) from None
    reason = _no_gpu_reason(item.config)
    if not reason and not budget.gpus and visible_gpus() == ():
        reason = "CUDA_VISIBLE_DEVICES leaves no GPU to this test."
    if reason:
        note(item, property_, f"not recorded: {reason}")
        if item.config.getini("gpudiag_no_gpu") == "fail":
            pytest.fail(f"gpudiag: {reason}", pytrace=False)
        pytest.skip(f"gpudiag: {reason}")
    return BudgetedTest(item, budget, property_)


def _given(item: pytest.Item, marker: str) -> dict[str, object]:
    """What the markers state: that of the test goes before that of its class, and that before the module's."""
    given: dict[str, object] = {}
    for mark in item.iter_markers(marker):
        if mark.args:
            raise ConfigError(f"a GPU budget is stated by name, as in {marker}(idle_pct=20), but got {mark.args[0]!r}.")
        given = dict(mark.kwargs) | given
    return given


def _no_gpu_reason(config: pytest.Config) -> str:
    """Why nothing can be recorded here, asked once a session; '' where a GPU answers."""
    if _no_gpu not in config.stash:
        adapter, reason = nvml.Nvml(), ""
        try:
            if not adapter.open()[1]:
                reason = "the NVIDIA driver sees no GPU on this machine."
            adapter.close()
        except NoDriver as error:
            reason = str(error)
        config.stash[_no_gpu] = reason
    return config.stash[_no_gpu]


def _seen() -> tuple[str, ...]:
    """The one GPU that this process uses, else those that it may see. Raises ConfigError where nobody knows which."""
    uuid = visible_gpu()
    if uuid.startswith("GPU-"):
        return (uuid,)
    gpus = visible_gpus()
    if gpus is None:
        raise ConfigError(
            "CUDA_VISIBLE_DEVICES does not tell which GPUs these are; set CUDA_DEVICE_ORDER=PCI_BUS_ID, or name them "
            "in the marker: gpus=('0', '1')."
        )
    return gpus


def note(item: pytest.Item, name: str, said: str) -> None:
    """Let the reports of the test carry it; what an earlier attempt at the test said goes."""
    item.user_properties[:] = [one for one in item.user_properties if one[0] != name]
    item.user_properties.append((name, said))


def recording_name(nodeid: str) -> str:
    """A file for the test: its name as far as files can hold it, and what tells it from others."""
    readable = re.sub(r"[^\w.-]+", "-", nodeid).strip("-.")[-100:]
    return f"{readable}-{sha256(nodeid.encode(errors='replace')).hexdigest()[:8]}.csv"
