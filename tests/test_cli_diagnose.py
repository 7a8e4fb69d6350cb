"""gpudiag diagnose for other programs: formats, presets, suppressions and the plan."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from documents import fits

SAMPLES = Path(__file__).resolve().parent.parent / "data" / "samples"
SAMPLE = SAMPLES / "tiny-batch-laptop"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SAMPLE, tmp_path / "run"))


@pytest.mark.slow
def test_every_format_is_well_formed(gpudiag, tmp_path: Path) -> None:
    code, out, _ = gpudiag("diagnose", SAMPLE, "--format", "json", "--plan-out", "sub/plan.json")
    assert code == 0
    fits(json.loads(out), "diagnosis-4")
    plan = json.loads((tmp_path / "sub" / "plan.json").read_text())
    fits(plan, "plan-1")
    code, out, _ = gpudiag("diagnose", SAMPLE, "--format", "junit", "--fail-on", "note")
    found = list(ElementTree.fromstring(out.encode()).iter("failure"))
    assert code == 1 and len(found) >= 3
    _, out, _ = gpudiag("diagnose", SAMPLE, "--format", "github")
    assert sum(
        line.startswith(("::error", "::warning", "::notice title=gpudiag ")) for line in out.splitlines()
    ) == len(found)
    code, _, err = gpudiag("diagnose", SAMPLE, "--format", "junt")
    assert code == 2 and "did you mean 'junit'?" in err


@pytest.mark.slow
def test_a_preset_changes_limits_and_a_wrong_one_is_refused(gpudiag) -> None:
    _, out, _ = gpudiag(
        "diagnose", SAMPLE, "--format", "json", "--preset", "traceml", "--set", "memory-headroom.low_pct=40"
    )
    document = json.loads(out)
    limits = {v["rule"]: v["thresholds"] for v in document["verdicts"]}
    assert document["preset"] == "traceml"
    assert limits["gpu-low-utilization"]["below_par_pct"] == 70 and limits["memory-headroom"]["low_pct"] == 40
    code, _, err = gpudiag("diagnose", SAMPLE, "--preset", "jobstat")
    assert code == 2 and err == "gpudiag: there is no preset 'jobstat'; did you mean 'jobstats'?\n"


@pytest.mark.slow
def test_suppressions_beside_the_run_or_in_this_folder(gpudiag, folder: Path, tmp_path: Path) -> None:
    text = '[[suppress]]\nrule = "memory-headroom"\nreason = "a laptop"\n'
    ended = '[[suppress]]\nrule = "power-implausible"\nreason = "driver"\nuntil = 2020-01-01\n'
    (tmp_path / "gpudiag.toml").write_text(text)
    _, out, _ = gpudiag("diagnose", folder, "--all")
    assert "suppressed" in out and "Suppressed: a laptop" in " ".join(out.split())
    (folder / "gpudiag.toml").write_text(ended)
    _, out, _ = gpudiag("diagnose", folder)
    assert "a laptop" not in out and "ended on 2020-01-01" in " ".join(out.split())
    _, out, _ = gpudiag("diagnose", folder, "--suppress", "gpudiag.toml", "--format", "json")
    states = {v["rule"]: (v["status"], v["reason"]) for v in json.loads(out)["verdicts"]}
    assert states["memory-headroom"] == ("suppressed", "a laptop")
    for written in ("--format", "md"), ("--format", "github"):
        _, out, _ = gpudiag("diagnose", folder, *written)
        assert "ended on 2020-01-01" in out
    (folder / "gpudiag.toml").write_text(text.replace("headroom", "haedroom"))
    code, _, err = gpudiag("diagnose", folder)
    assert code == 2 and err.count("\n") == 1 and "did you mean 'memory-headroom'?" in err


def loaded(heavy: tuple[str, ...], *arguments: object) -> list[str]:
    """Which of these modules a command imports."""
    program = (
        "import sys; from gpudiag.cli import main\n"
        f"sys.argv = {['gpudiag', *map(str, arguments)]!r}\n"
        f"try: main()\nexcept SystemExit: pass\nprint('LOADED', *(n for n in {heavy!r} if n in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    said = done.stdout.splitlines()[-1].split()
    assert said[0] == "LOADED"
    return said[1:]


@pytest.mark.slow
def test_a_diagnosis_loads_nothing_that_draws_or_searches_and_ends_without_another_look_through_all_objects() -> None:
    """Each of these takes a tenth to half a second to import. At its end Python would look for circles among what every
    library and run left: an eighth of a small diagnosis.
    """
    heavy = ("matplotlib", "scipy.stats", "scipy.optimize", "optuna", "IPython", "nbformat", "papermill", "jinja2")
    heavy += ("numpy.f2py.crackfortran",)
    program = (
        "import atexit, gc, sys; from gpudiag.cli import main\n"
        f"atexit.register(lambda: print('LOADED', *(name for name in {heavy!r} if name in sys.modules)))\n"
        "atexit.register(lambda: print('FROZEN', gc.get_freeze_count(), len(gc.get_objects())))\n"
        f"sys.argv = ['gpudiag', 'diagnose', {str(SAMPLES / 'healthy')!r}]; main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    *_, frozen_line, loaded_line = done.stdout.splitlines()
    said, frozen, left = frozen_line.split()
    assert said == "FROZEN" and int(frozen) > 100_000 and int(left) < int(frozen) / 100
    assert loaded_line == "LOADED"


@pytest.mark.slow
def test_help_loads_nothing_that_reads_or_shows_a_run() -> None:
    heavy = ("pandas", "polars", "numpy", "pydantic", "gpudiag.report._render", "gpudiag.report._notebook")
    assert loaded(heavy, "--help") == []
    assert loaded(("gpudiag.report._notebook.redact",), "nonsense") != [], "what an error quotes holds no password"


@pytest.mark.slow
def test_who_has_a_kernel_make_a_report_does_not_load_what_reads_runs() -> None:
    """The kernel loads it; the folder has a run.toml, so that nobody need ask whether a reader knows its files."""
    assert loaded(("polars", "gpudiag.readers.identify"), "report", SAMPLES / "healthy", "-o", __file__) == []
