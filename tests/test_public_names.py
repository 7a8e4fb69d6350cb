from __future__ import annotations

import subprocess
import sys

import pytest

import gpudiag

HEAVY = ("pandas", "polars", "numpy", "scipy", "matplotlib", "seaborn", "optuna", "papermill", "sqlalchemy", "pydantic",
         "anywidget", "ipywidgets")  # fmt: skip


def loaded_by(code: str) -> set[str]:
    program = f"import sys\n{code}\nprint(*[m for m in {HEAVY!r} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(result.stdout.split())


def test_import_is_cheap() -> None:
    assert loaded_by("import gpudiag") == set()
    assert loaded_by("import gpudiag.cli") == set()


def test_every_public_name_resolves_and_is_listed() -> None:
    assert sorted(gpudiag.__all__) == list(dir(gpudiag))
    for name in gpudiag.__all__:
        assert getattr(gpudiag, name) is not None


def test_public_names_have_docstrings() -> None:
    for name in gpudiag.__all__:
        if name != "__version__":
            assert getattr(gpudiag, name).__doc__, name


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'no_such_name'"):
        _ = gpudiag.no_such_name


EXTENSION_POINTS = {
    "rules": {"RULES", "Evidence", "NotApplicable", "Rule", "Severity", "Status", "Verdict", "catalogue", "rule"},
    "measures": {"MEASURES", "PROFILES", "Measure", "Profile", "measure_memory", "measure_trials"},
    "readers": {"Reader", "ReadOptions", "Telemetry", "Trials"},
}


@pytest.mark.parametrize("module", EXTENSION_POINTS)
def test_what_people_extend_is_public_by_name(module: str) -> None:
    public = getattr(gpudiag, module)
    assert EXTENSION_POINTS[module] <= set(public.__all__)
    for name in public.__all__:
        assert getattr(public, name) is not None, name
    with pytest.raises(AttributeError):
        _ = public.no_such_name
