from __future__ import annotations

from pathlib import Path

import pytest

from gpudiag.errors import ConfigError, InputNotFound
from gpudiag.manifest import Manifest, check_manifest, read_manifest


def test_every_key_is_optional() -> None:
    manifest = check_manifest({}, "run.toml")
    assert manifest == Manifest()
    assert manifest.settings.parallel is None
    assert manifest.telemetry == ()


def test_the_example_in_the_docstring_is_legal(tmp_path: Path) -> None:
    import inspect
    import textwrap

    from gpudiag import manifest

    text = inspect.getdoc(manifest)
    assert text is not None
    example = text[text.index("    name = ") : text.index("Without run.toml")]
    path = tmp_path / "run.toml"
    path.write_text(textwrap.dedent(example), encoding="utf-8")
    read = read_manifest(path)
    assert read.settings.parallel == 4
    assert read.rules["gpu-low-utilization"] == {"low_pct": 30}
    assert (read.training.parameters, read.training.dtype) == (7_000_000_000, "bf16")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"telemtry": ["a"]}, r"run\.toml: unknown key 'telemtry'; did you mean 'telemetry'\?"),
        ({"settings": {"paralel": 4}}, r"unknown key 'settings\.paralel'; did you mean 'parallel'\?"),
        ({"dataloader": {"workers": 4}}, r"unknown key 'dataloader\.workers'; did you mean 'num_workers'\?"),
        ({"gpus": {"0": {"power": 1}}}, r"unknown key 'gpus\.0\.power'; .*power_limit_w"),
        ({"training": {"paramters": 1}}, r"unknown key 'training\.paramters'; did you mean 'parameters'\?"),
        (
            {"training": {"dtype": "int8"}},
            r"key 'training\.dtype': .*'fp32', 'tf32', 'fp16', 'bf16' or 'fp8', but got 'int8'",
        ),
        ({"training": {"parameters": "7B"}}, r"key 'training\.parameters': .*but got '7B'"),
        ({"training": {"tokens_per_step": 0}}, r"key 'training\.tokens_per_step': .*but got 0"),
        ({"settings": {"parallel": 0}}, r"key 'settings\.parallel': .*greater than or equal to 1, but got 0"),
        ({"settings": {"parallel": "four"}}, r"key 'settings\.parallel': .*but got 'four'"),
    ],
)
def test_a_wrong_key_names_itself_and_the_nearest_legal_one(data: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_manifest(data, "run.toml")


@pytest.mark.parametrize(("given", "dtype"), [("bf16", "bf16"), ("torch.bfloat16", "bf16"), ("Half", "fp16")])
def test_a_number_format_may_have_its_long_name(given: str, dtype: str) -> None:
    assert check_manifest({"training": {"dtype": given}}, "run.toml").training.dtype == dtype


@pytest.mark.parametrize(
    ("given", "held"), [("minimize", ("minimize",)), ("MAXIMIZE", ("maximize",)), (["minimize"] * 2, ("minimize",) * 2)]
)
def test_a_direction_is_one_or_one_for_each_objective(given: object, held: tuple[str, ...]) -> None:
    assert check_manifest({"direction": given}, "run.toml").direction == held
    with pytest.raises(ConfigError, match="direction"):
        check_manifest({"direction": "smaller"}, "run.toml")


def test_one_path_may_stand_without_brackets() -> None:
    assert check_manifest({"telemetry": "gpu.csv"}, "run.toml").telemetry == ("gpu.csv",)


def test_broken_toml_says_where(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text('name = "a"\nparallel = = 3\n', encoding="utf-8")
    with pytest.raises(ConfigError, match=r"run\.toml: is not valid TOML \(.*line 2"):
        read_manifest(path)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputNotFound, match=r"no such file; expected a run\.toml"):
        read_manifest(tmp_path / "run.toml")
