"""Copies of the shipped notebooks, with a run filled in, to work on."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpudiag._load.folder import walk
from gpudiag._load.sources import is_whole, name_of
from gpudiag.errors import ConfigError, GpudiagError, InputError, InputNotFound
from gpudiag.files import write
from gpudiag.load import load_run, locate
from gpudiag.manifest import Manifest, manifest_if_any, place_of
from gpudiag.readers._io.source import Source
from gpudiag.readers._io.url import is_address, is_url, shown
from gpudiag.readers.identify import identify
from gpudiag.report._notebook.locate import find_notebook, shipped_notebooks
from gpudiag.report._notebook.parameters import Given, Parameters, check_parameters

if TYPE_CHECKING:
    from nbformat import NotebookNode

PARAMETERS = "parameters"
DEMO = "hpo-aggressive-pruning"
DEMO_PAIR = "second-worker"
FILLED = ("run_path", "baseline_path", "experiment_path", "reports_path")
SINGLE = {"gpu_report": ("telemetry",), "hpo_report": ("trials", "artifacts")}
"""Notebooks of single inputs, and which of them stand in for the run."""
NEEDED = SINGLE | dict.fromkeys(("capacity_report", "tour", "ad_hoc"), ("trials", "artifacts"))
"""Notebooks that are copied only where the run has one of these, for they have nothing to show else."""
OF_TRIALS = ("hpo_report", "capacity_report", "tour", "ad_hoc")
"""Those of them that stop without trials: a log among the artifacts tells of trials or of a training."""
ALSO = {
    "gpu_report": ("timezone", "columns", "period_s"),
    "hpo_report": ("study", "timezone"),
    "run_report": ("diagnosis_json",),
}


@dataclass(frozen=True)
class Shipped:
    """A notebook that comes with the package: what it is for, and the names of its parameters."""

    name: str
    title: str
    parameters: tuple[str, ...]


def list_notebooks() -> list[Shipped]:
    """Every notebook that comes with the package, by name."""
    import papermill

    found = []
    for name, path in shipped_notebooks().items():
        notebook = _read(path)
        heading = next((re.match(r"#+ (.+)", c.source) for c in notebook.cells if c.cell_type == "markdown"), None)
        known = papermill.inspect_notebook(notebook) if _parameters_cell(notebook) else {}
        found.append(Shipped(name, heading[1] if heading else "", tuple(known)))
    return found


def copy_notebook(name: str, path: str | Path, parameters: Mapping[str, Given] | None = None) -> Path:
    """Copy a shipped notebook to ``path`` (a file, or a folder), with values in its parameters cell.

    Raises:
        ConfigError: no such notebook or parameter, a value of the wrong type, or a file is there already.
    """
    source = find_notebook(name)
    path = Path(path)
    path = path if path.suffix == ".ipynb" else path / source.name
    if path.exists():
        raise ConfigError(f"{path}: is there already and is left as it is; choose another name or remove it.")
    import nbformat

    notebook = _read(source)
    fill(notebook, check_parameters(source, parameters or {}))
    write(path, nbformat.writes(notebook))
    return path


def copy_all(folder: Path, run: str | Path | None) -> list[Path]:
    """Every shipped notebook that is not in ``folder`` yet and that the run has data for, with the run filled in.

    Without a run, a folder that has notebooks is left as it is; in another one, simulated runs are written beside the
    notebooks and filled in, so that every cell runs. ``reports_path`` is where run_report leaves its diagnosis.

    Returns:
        What was copied.

    Raises:
        InputError: there is no such run, or it holds nothing that can be read.
        ConfigError: run.toml has an unknown key or an illegal value.
    """
    if run is None and (folder / "run_report.ipynb").exists():
        return []
    values = _demo(folder) if run is None else _about(run)
    values["reports_path"] = str((folder / "reports").resolve())
    source = str(values["run_path"])
    run_path = Path(source)
    whole = (run_path if run_path.is_dir() else run_path.parent).name if is_whole(source) else ""
    called = whole or re.sub(r"[^\w.-]+", "-", name_of([source]))
    values["diagnosis_json"] = str(folder.resolve() / "reports" / called / "diagnosis.json")
    without = set() if values["trials"] or _has_trials(values["run_path"]) else set(OF_TRIALS)
    made = []
    for shipped in list_notebooks():
        path = folder / f"{shipped.name}.ipynb"
        needed = NEEDED.get(shipped.name)
        if path.exists() or shipped.name in without:
            continue
        if needed is None or any(values[name] for name in needed):
            single = SINGLE.get(shipped.name, ())  # an input that the run lacks must not stay that of the sample
            names = [x for x in (*FILLED, *single, *ALSO.get(shipped.name, ())) if x in shipped.parameters]
            filled = {x: values[x] for x in names if values[x] or x in single}
            made.append(copy_notebook(shipped.name, path, filled))
    return made


def _has_trials(run: Given) -> bool:
    """Whether its logs tell of trials; of a run that cannot be read nobody knows."""
    try:
        return len(load_run(str(run)).trials) > 0
    except GpudiagError:
        return True


def kept_about_others(folder: Path, run: str | Path) -> list[Path]:
    """Notebooks in ``folder`` that have a ``run_path``, and it is not this run's: copied earlier, or changed since."""
    this = json.dumps(_absolute(run), ensure_ascii=False)[1:-1]
    texts = {path: path.read_text(encoding="utf-8", errors="replace") for path in sorted(folder.glob("*.ipynb"))}
    return [
        path
        for path, text in texts.items()
        if re.search(r"\brun_path\s*=", text) and not re.search(rf"['\"]{re.escape(this)}[\\'\"]", text)
    ]


def _demo(folder: Path) -> Parameters:
    """The values for a simulated run, and for a simulated pair to compare."""
    from gpudiag.simulation.cases import write_case

    for case in (DEMO, DEMO_PAIR):
        if not (folder / "data" / case).exists():
            write_case(case, folder / "data" / case)
    pair = (folder / "data" / DEMO_PAIR).resolve()
    compared = {"baseline_path": str(pair / "baseline"), "experiment_path": str(pair / "experiment")}
    return _about(folder / "data" / DEMO) | compared


def _about(run: str | Path) -> Parameters:
    """Values for every parameter that names inputs: a run stands beside itself until another one is filled in.

    Raises ConfigError for a URL with a password, which is not copied into notebooks.
    """
    if shown(run) != str(run):
        raise ConfigError(
            f"{shown(run)}: notebooks do not keep passwords; give a folder with a run.toml, or a URL without."
        )
    path = _absolute(run)
    return {"run_path": path, "baseline_path": path, "experiment_path": path, **inputs_by_kind(path)}


def _absolute(run: str | Path) -> str:
    """The run as a notebook in another folder names it."""
    return str(locate(str(run), Path.cwd())) if is_url(run) else str(Path(run).resolve())


def inputs_by_kind(source: str | Path | Sequence[str | Path]) -> Parameters:
    """The inputs of a run by kind, as run.toml names them or as their content says; no table is read."""
    single = [source] if isinstance(source, str | Path) else list(source)
    if all(map(is_address, single)):
        return {"telemetry": [], "trials": "", "artifacts": [], **_layout(Manifest())}
    if not is_whole(single[0]):
        return _sorted_out(single, _layout(Manifest()))
    run = Path(single[0])
    if not run.exists():
        raise InputNotFound.run(run)
    folder, path = place_of(run)
    manifest = manifest_if_any(path)
    named = _layout(manifest)
    trials = [manifest.trials] if manifest.trials else []
    kinds = {"telemetry": manifest.telemetry, "trials": trials, "artifacts": manifest.artifacts}
    found = {kind: [str(locate(name, folder.resolve())) for name in names] for kind, names in kinds.items()}
    if not any(found.values()):
        return _sorted_out(
            [one.path for one, known in walk(folder.resolve()) if known and isinstance(one, Source)], named, run
        )
    study = next(iter(found["trials"]), "")
    return {**found, "trials": study if shown(study) == study else "", **named}  # a password is not copied


def _layout(manifest: Manifest) -> Parameters:
    """How run.toml says that inputs are read, as parameters of notebooks have it."""
    return {
        "study": manifest.study or "",
        "timezone": manifest.timezone or "",
        "columns": list(manifest.columns),
        "period_s": manifest.period_s or 0.0,
    }


def _sorted_out(inputs: Sequence[str | Path], named: Parameters, run: Path | None = None) -> Parameters:
    """The inputs by the kind that their content says."""
    found: dict[str, list[str]] = {"telemetry": [], "trials": [], "artifacts": []}
    for one in inputs:
        known = ("trials", None) if is_url(one) else identify(Source.open(one))
        if known is not None:
            found[known[0]].append(str(one))
    if not any(found.values()):
        what = run or shown(inputs[0])
        raise InputError(f"{what}: no data found; `gpudiag inspect {what}` says how each file would be read.")
    return {**found, "trials": next(iter(found["trials"]), ""), **named}


def fill(notebook: NotebookNode, values: Parameters) -> None:
    """Put these values in place of the defaults in the parameters cell; comments stay."""
    cell = _parameters_cell(notebook)
    if cell is None:
        return
    for name, value in values.items():
        line = re.compile(rf"^({re.escape(name)}\s*=\s*).*?(\s+#.*)?$", re.MULTILINE)
        found = line.search(cell.source)
        if found:
            filled = f"{found[1]}{value!r}{found[2] or ''}"
            cell.source = cell.source[: found.start()] + filled + cell.source[found.end() :]


def _parameters_cell(notebook: NotebookNode) -> NotebookNode | None:
    return next((cell for cell in notebook.cells if PARAMETERS in cell.metadata.get("tags", [])), None)


def _read(path: Path) -> NotebookNode:
    import nbformat

    return nbformat.read(path, as_version=4)
