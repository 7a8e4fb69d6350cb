"""A release: one version, dependencies that are used and complete, a recipe that asks for the same, workflows."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from test_architecture import files, imported_names

from gpudiag import __version__

ROOT = Path(__file__).resolve().parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NEEDED = {canonicalize_name(one.name): one for one in map(Requirement, PROJECT["dependencies"])}
EXTRAS = {
    canonicalize_name(Requirement(one).name)
    for extra, asked in PROJECT["optional-dependencies"].items()
    if extra != "test"
    for one in asked
}
BROUGHT = {
    "dask": "distributed",
    "ipython": "ipykernel",
    "jupyter-client": "ipykernel",
    "jupyter-core": "ipykernel",
    "mcp-types": "mcp",
    "pydantic-core": "pydantic",
    "traitlets": "nbformat",
    "typing-extensions": "pydantic",
}
"""Imported, and asked for by a package that we ask for."""
FRAMEWORKS = {"keras", "lightning", "pytorch-lightning", "pytest", "ray", "transformers"}
"""Of who calls gpudiag from there."""
NOT_IMPORTED = {"ipykernel": "the kernel of a report", "tzdata": "zones on Windows"}
CONDA = {"matplotlib": "matplotlib-base", "nbconvert": "nbconvert-core", "seaborn": "seaborn-base"}
CONDA |= {"tzdata": "python-tzdata"}
"""conda-forge's names where they differ from PyPI's."""
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
OURS = [path for path in WORKFLOWS if path.stem in ("test", "release")]


def test_there_is_one_version_and_the_changelog_knows_it() -> None:
    assert "version" in PROJECT["dynamic"] and "version" not in PROJECT
    heads = re.findall(r"^## (\S+)(?: - (\d{4}-\d\d-\d\d))?$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    newest, day = next(one for one in heads if one[0] != "Unreleased")
    assert newest == __version__ and day


@pytest.mark.skipif(sys.platform != "linux", reason="sed -i of GNU")
def test_the_commands_of_a_release_change_every_place_of_the_version(tmp_path: Path) -> None:
    block = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("# Releasing")[2]
    edits = re.findall(r"^    ((?:grep|sed) .*?)(?: && git commit .*)?$", block, re.MULTILINE)
    before, after = edits[:-1], edits[-1]
    places = ("gpudiag/__init__.py", "CHANGELOG.md", "docs/ci.md", "docs/_static/switcher.json", "recipe/recipe.yaml")
    for place in places:
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / place, tmp_path / place)

    def run(*commands: str) -> str:
        script = "\n".join(["export VERSION=99.1.2", *commands])
        return subprocess.run(["bash", "-ec", script], cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    changes = tmp_path / "CHANGELOG.md"
    told = re.sub(r"^## Unreleased\n\n", "", changes.read_text("utf-8"), flags=re.MULTILINE)
    changes.write_text(told, encoding="utf-8")
    assert "no line '## Unreleased'" in run(*before)
    changes.write_text(told.replace("\n## ", "\n## Unreleased\n\n## ", 1), encoding="utf-8")
    assert run(*before) == ""
    assert all((tmp_path / place).read_text("utf-8").count("99.1.2") == 1 for place in places)
    run(after)
    assert re.findall(r"^## (\S+)", changes.read_text("utf-8"), re.MULTILINE)[:2] == ["Unreleased", "99.1.2"]


def _imported() -> set[str]:
    """Packages outside the standard library that any file of gpudiag imports, wherever the import stands."""
    modules = {name.partition(".")[0] for path in files().values() for name in imported_names(path)}
    modules -= {*sys.stdlib_module_names, "gpudiag"}
    known = packages_distributions()
    return {canonicalize_name(name) for module in modules for name in known.get(module, [module])}


@pytest.mark.slow
def test_what_is_imported_is_asked_for_and_what_is_asked_for_is_imported() -> None:
    imported = _imported()
    assert imported - NEEDED.keys() - EXTRAS - FRAMEWORKS == BROUGHT.keys() & imported
    assert set(BROUGHT.values()) <= {*NEEDED, *EXTRAS}
    assert NEEDED.keys() - imported == NOT_IMPORTED.keys()


def test_the_page_of_the_installation_has_every_extra_that_is_for_users() -> None:
    page = (ROOT / "docs" / "start" / "index.md").read_text(encoding="utf-8")
    named = [name for line in re.findall(r"^\| (`.*?) \|", page, re.MULTILINE) for name in re.findall(r"`(\w+)`", line)]
    assert sorted([*named, "docs", "test"]) == sorted(PROJECT["optional-dependencies"])


def test_the_footer_of_the_site_names_who_is_to_be_cited() -> None:
    (cited,) = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["authors"]
    assert f'author = "{cited["name"]}"' in (ROOT / "docs" / "conf.py").read_text(encoding="utf-8")


def test_no_dependency_has_an_upper_bound() -> None:
    assert [one for one in NEEDED.values() if {part.operator for part in one.specifier} != {">="}] == []


def test_the_recipe_for_conda_asks_for_the_same() -> None:
    recipe = yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8"))
    asked = [f"python {PROJECT['requires-python']}"]
    asked += [f"{CONDA.get(name, name)} {one.specifier}" for name, one in NEEDED.items()]
    assert sorted(recipe["requirements"]["run"]) == sorted(asked)
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    assert [one.replace(" ", "") for one in recipe["requirements"]["host"][2:]] == build
    assert recipe["build"]["python"]["entry_points"] == [f"{k} = {v}" for k, v in PROJECT["scripts"].items()]
    assert recipe["about"]["license"] == PROJECT["license"]
    assert recipe["about"]["license_file"] == PROJECT["license-files"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_runs_pinned_actions_and_nothing_from_outside_in_a_script(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            assert "${{" not in step.get("run", "")
            assert "run" in step or re.fullmatch(r"[\w-]+(/[\w.-]+)+@[0-9a-f]{40}", step["uses"]), "pinned by commit"


def test_only_the_job_that_publishes_may_more_than_read() -> None:
    for path in OURS:
        workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert workflow["permissions"] == {"contents": "read"}
        more = {name: job for name, job in workflow["jobs"].items() if "permissions" in job or "environment" in job}
        assert list(more) == (["publish"] if path.stem == "release" else [])
        for job in more.values():  # of the repository it runs nothing
            assert not [step for step in job["steps"] if "run" in step or "checkout" in step["uses"]]


def test_the_tests_run_on_every_python_that_is_promised() -> None:
    (path,) = [one for one in OURS if one.stem == "test"]
    matrix = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]["test"]["strategy"]["matrix"]
    promised = [one.rpartition(" :: ")[2] for one in PROJECT["classifiers"] if "Python :: 3." in one]
    assert matrix["python"] == promised and f">={promised[0]}" == PROJECT["requires-python"]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
def test_what_a_workflow_makes_is_in_the_makefile() -> None:
    made = set(re.findall(r"^\s*(?:- )?run: make ([\w -]+?)(?: PYTHON=python)?$", _all_workflows(), re.MULTILINE))
    assert {"check", "dist test-dist"} <= made
    for targets in made:
        done = subprocess.run(["make", "-n", *targets.split()], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def _all_workflows() -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in OURS)


def test_the_release_checks_that_the_tag_is_the_version(tmp_path: Path) -> None:
    (path,) = [one for one in OURS if one.stem == "release"]
    steps = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]["build"]["steps"]
    (script,) = [step["run"] for step in steps if step.get("name") == "The tag is the version"]
    for tag, code in ((f"v{__version__}", 0), (__version__, 1), (f"v{__version__}.1", 1)):
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
        done = subprocess.run(command, cwd=ROOT, env={"GITHUB_REF_NAME": tag, "PATH": "/usr/bin:/bin"}, check=False)
        assert done.returncode == code
