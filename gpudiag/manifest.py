"""run.toml: what a person knows about a run that its files do not say.

    name = "lr-search-3"
    timezone = "Asia/Taipei"          # zone of timestamps that carry none
    telemetry = ["gpu.csv"]           # paths are relative to run.toml
    trials = "optuna.db"              # or a storage URL
    study = "lr-search"
    direction = "minimize"            # where no file says it; a list for several objectives
    artifacts = ["tasks.jsonl"]

    [settings]
    parallel = 4                      # workers asked for
    cpu_cores = 12
    commit = "4f2a91c"                # a fleet and a history name it where numbers change
    pruner = "patient(hyperband(min_resource=1,max_resource=100,reduction_factor=3),patience=2)"

    [dataloader]
    num_workers = 2

    [training]                        # for model FLOPs utilization
    parameters = 7_000_000_000
    dtype = "bf16"
    tokens_per_step = 4_194_304       # of all GPUs together, where the log states no tokens

    [rules.gpu-low-utilization]       # thresholds, by rule id
    low_pct = 30

Without run.toml a folder is searched by content; every key here is optional. Where only one of telemetry and of what
ran (trials, artifacts) is named, the folder is searched for the other; ``telemetry = []`` states that there is none.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from gpudiag.errors import ConfigError, InputNotFound, nearest

MANIFEST = "run.toml"
MOST_OFFSET_S = 366 * 86_400
"""Clocks differ by seconds or by time zones; by more than a year no pair does."""
MOST_COUNT, MOST_SIZE = 10**9, 1e9
"""What is larger is a slip, and some sum of it would be no number."""
MOST_PARAMETERS = 10**15
_LONG_NAMES = {"float32": "fp32", "float16": "fp16", "half": "fp16", "bfloat16": "bf16", "float8": "fp8"}


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


TextList = Annotated[tuple[str, ...], BeforeValidator(_listed)]
"""One name or several: ``telemetry = "gpu.csv"`` is as good as a list."""


def _named(value: Any) -> Any:
    return [name.strip() for name in value.split(",") if name.strip()] if isinstance(value, str) else value


Columns = Annotated[tuple[str, ...], BeforeValidator(_named)]
"""Names of columns: a list, or one text with commas as ``--columns`` takes it."""


def _lower(value: Any) -> Any:
    given = _listed(value)
    if not isinstance(given, list):
        return given
    return [one.strip().lower() if isinstance(one, str) else one for one in given]


Directions = Annotated[tuple[Literal["minimize", "maximize"], ...], BeforeValidator(_lower)]
"""One for each objective."""


def _import_path(value: str) -> str:
    if value.endswith(".py") or not all(part.isidentifier() for part in value.split(".")):
        raise ValueError("expected an import path such as mypackage.rules (name a file with --rules)")
    return value


def _short_name(value: Any) -> Any:
    name = value.strip().lower().removeprefix("torch.") if isinstance(value, str) else value
    return _LONG_NAMES.get(name, name) if isinstance(name, str) else value


NumberFormat = Annotated[Literal["fp32", "tf32", "fp16", "bf16", "fp8"], BeforeValidator(_short_name)]
"""Format in which a training multiplies matrices; ``torch.bfloat16`` is as good as bf16."""
ImportPaths = Annotated[tuple[Annotated[str, AfterValidator(_import_path)], ...], BeforeValidator(_listed)]
"""Modules by import path. A run.toml lies among data, perhaps of somebody else, so it cannot name a file to run."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)


class Settings(_Strict):
    """How the run was started; unknown stays None."""

    parallel: int | None = Field(None, ge=1, le=MOST_COUNT, description="workers that were asked to run at once")
    n_trials: int | None = Field(None, ge=1, le=MOST_COUNT, description="trials that were asked for")
    cpu_cores: int | None = Field(None, ge=1, le=MOST_COUNT, description="CPU cores of the host")
    ram_gib: float | None = Field(None, gt=0, le=MOST_SIZE, description="memory of the host, GiB")
    sampler: str | None = Field(None, description="sampler, in words")
    pruner: str | None = Field(None, description="pruner specification, e.g. 'median(n_startup_trials=5)'")
    max_steps: int | None = Field(None, ge=1, le=MOST_COUNT, description="largest step (epoch) a trial may reach")
    price_per_gpu_h: float | None = Field(None, ge=0, le=MOST_SIZE, description="price of one GPU-hour")
    currency: str = Field("USD", description="currency of the price")
    command: str | None = Field(None, description="command line that started the run")
    commit: str | None = Field(None, description="commit of the code that ran")
    image: str | None = Field(None, description="container image that it ran in")
    framework: str | None = Field(None, description="framework and version, e.g. 'torch 2.9.0'")


class DataLoader(_Strict):
    """Input pipeline of one trial; unknown stays None."""

    num_workers: int | None = Field(None, ge=0, le=MOST_COUNT)
    prefetch_factor: int | None = Field(None, ge=0, le=MOST_COUNT)
    persistent_workers: bool | None = None
    pin_memory: bool | None = None
    batch_size: int | None = Field(None, ge=1, le=MOST_COUNT)
    val_batch_size: int | None = Field(None, ge=1, le=MOST_COUNT)


class Training(_Strict):
    """What is trained, for model FLOPs utilization; unknown stays None."""

    parameters: int | None = Field(
        None,
        ge=1,
        le=MOST_PARAMETERS,
        description="parameters of the model; of a mixture of experts those that one token uses",
    )
    dtype: NumberFormat | None = Field(
        None, description="number format of its matrix products: fp32, tf32, fp16, bf16, fp8"
    )
    tokens_per_step: int | None = Field(
        None, ge=1, le=MOST_PARAMETERS, description="tokens of a step, all GPUs together"
    )
    gpus: int | None = Field(None, ge=1, le=MOST_COUNT, description="GPUs of the training, those on other machines too")


class GpuOverride(_Strict):
    """Data-sheet values of one GPU where the driver's name does not tell."""

    name: str | None = None
    mem_total_mib: float | None = Field(None, ge=1, le=MOST_SIZE)
    power_limit_w: float | None = Field(None, ge=1, le=MOST_SIZE)


class Manifest(_Strict):
    """The content of run.toml."""

    name: str | None = None
    timezone: str | None = None
    telemetry: TextList = ()
    trials: str | None = None
    study: str | None = None
    direction: Directions = Field((), description="whether lower or higher values are better, where no file says it")
    artifacts: TextList = ()
    notes: TextList = ()
    user: str = Field("", description="whose run it is")
    project: str = Field("", description="project that it belongs to")
    host: str = Field("", description="machine that it ran on")
    show_attrs: TextList = Field((), description="user attributes that may appear in reports")
    period_s: float | None = Field(
        None, ge=1e-6, le=MOST_OFFSET_S, description="sampling period of telemetry without timestamps"
    )
    columns: Columns = Field((), description="column names of telemetry without a header")
    clock_offset_s: float | None = Field(
        None,
        ge=-MOST_OFFSET_S,
        le=MOST_OFFSET_S,
        description="clock of trials (without trials, of training logs) + this = telemetry clock",
    )
    settings: Settings = Settings()
    dataloader: DataLoader = DataLoader()
    training: Training = Training()
    stated: Mapping[str, float] = Field(
        default_factory=dict, description="counts written down by hand, e.g. COMPLETE = 8"
    )
    gpus: Mapping[str, GpuOverride] = Field(default_factory=dict, description="overrides by GPU index")
    rule_modules: ImportPaths = Field((), description="modules with rules of your own, by import path, never a file")
    rules: Mapping[str, Mapping[str, float]] = Field(default_factory=dict, description="thresholds by rule id")

    @property
    def inputs(self) -> tuple[str, ...]:
        """Every input that it names, by kind."""
        return (*self.telemetry, *([self.trials] if self.trials else []), *self.artifacts)

    @property
    def kinds_to_find(self) -> tuple[str, ...]:
        """Kinds of inputs that its folder is searched for, since no key says anything of them: trials and artifacts
        are one thing, what ran.
        """
        telemetry = () if "telemetry" in self.model_fields_set else ("telemetry",)
        return telemetry if {"trials", "artifacts"} & self.model_fields_set else (*telemetry, "trials", "artifacts")


def read_manifest(path: Path) -> Manifest:
    """Read and check one run.toml.

    Raises InputNotFound, or ConfigError that names the key, its place and the nearest legal key.
    """
    if not path.exists():
        raise InputNotFound(f"{path}: no such file; expected a run.toml.")
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{path}: is not valid TOML ({error}).") from error
    return check_manifest(data, str(path))


def place_of(run: Path) -> tuple[Path, Path]:
    """The folder of a run and its run.toml, which may be missing; ``run`` is either of them."""
    return (run, run / MANIFEST) if run.is_dir() else (run.parent, run)


def manifest_if_any(path: Path) -> Manifest:
    """What a run.toml states: nothing where there is none. Raises what :func:`read_manifest` raises."""
    return read_manifest(path) if path.is_file() else Manifest()


def check_manifest(data: Mapping[str, Any], where: str) -> Manifest:
    """Check the content of a run.toml; ``where`` names it in messages."""
    try:
        return Manifest.model_validate(data)
    except ValidationError as error:
        raise ConfigError("; ".join(_explain(item, where) for item in error.errors()[:3])) from error


def _explain(item: Mapping[str, Any], where: str) -> str:
    """One sentence for one pydantic complaint."""
    keys = [str(part) for part in item["loc"]]
    dotted = ".".join(keys)
    if item["type"] == "extra_forbidden":
        return f"{where}: unknown key '{dotted}'; {nearest(keys[-1], _legal_keys(keys[:-1]))}"
    return f"{where}: key '{dotted}': {item['msg']}, but got {item['input']!r}."


def _legal_keys(parents: list[str]) -> list[str]:
    """The keys that may stand under ``parents`` in run.toml."""
    sections: dict[str, type[BaseModel]] = {
        "settings": Settings,
        "dataloader": DataLoader,
        "training": Training,
        "gpus": GpuOverride,
    }
    model = sections.get(parents[0], Manifest) if parents else Manifest
    return list(model.model_fields)
