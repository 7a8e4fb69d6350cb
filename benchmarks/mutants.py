"""How many planted faults the tests notice: a seeded sample of Cosmic Ray's mutations, each against the mirrored tests.

The tree is copied first and only the copy is mutated. A mutant is killed if a test fails or takes too long. Rules,
recommendations, measures and the formatter of numbers are where a wrong number would be born, so these are sampled;
annotations and decorators are left out, since what is changed there does not run.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from cosmic_ray.commands import init
from cosmic_ray.mutating import mutate_and_test
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import MutationSpec

ROOT = Path(__file__).resolve().parent.parent
BY_HAND = tuple(
    f"tests/rules/test_rules_{name}.py" for name in ("numbers", "thresholds", "telemetry", "search", "ledger")
)
MUTATED = {
    "gpudiag/rules": (*BY_HAND, "tests/rules"),
    "gpudiag/advice": ("tests/advice",),
    "gpudiag/measures": ("tests/measures", *BY_HAND, "tests/rules"),
    "gpudiag/report/format.py": ("tests/report/test_format.py",),
}
"""What is mutated, and the tests that ought to notice, those that take seconds first."""
LEFT_OUT = ("ReplaceBinaryOperator_BitOr", "RemoveDecorator", "ExceptionReplacer", "VariableInserter")
"""Operators that mostly change annotations (``X | None``) or what Python checks by itself."""
TIMEOUT_S = 1800.0
"""Of all tests of a place, several times what they take on a busy machine: a mutant that is only slow is not killed."""


def copied(folder: Path) -> Path:
    """The files that git tracks, as they are in the working tree."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target)
    return folder


def mutations(tree: Path, place: str, work: Path) -> list[MutationSpec]:
    """Every mutation of a file or of the files of a folder."""
    path = tree / place
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
    with use_db(str(work), WorkDB.Mode.create) as database:
        init(files, database, {})
        found = [item.mutations[0] for item in database.work_items]
    wanted = [one for one in found if not any(name in one.operator_name for name in LEFT_OUT)]
    return sorted(wanted, key=lambda one: (str(one.module_path), one.operator_name, one.occurrence))


def mirrored(tree: Path, place: str, module: Path) -> list[str]:
    """The tests of a place, those that import or are named after the module first: most mutants end there."""
    name = ".".join(module.with_suffix("").parts)
    folder, _, stem = name.rpartition(".")
    imports = re.compile(rf"^from ({re.escape(name)} import|{re.escape(folder)} import .*\b{stem}\b)", re.MULTILINE)

    def later(path: Path) -> bool:
        return stem not in path.stem and not imports.search(path.read_text(encoding="utf-8"))

    given = [tree / one for one in MUTATED[place]]
    files = [file for one in given for file in (sorted(one.rglob("test_*.py")) if one.is_dir() else [one])]
    return list(dict.fromkeys(str(file.relative_to(tree)) for file in sorted(files, key=later)))


def command(tests: list[str]) -> str:
    """The line that runs these tests, to the first that fails."""
    return f"{sys.executable} -m pytest -q -x -p no:cacheprovider -m 'not browser' {' '.join(tests)}"


def tried(tree: Path, place: str, chosen: list[MutationSpec]) -> Iterator[bool]:
    """Whether each mutant was killed; survivors are printed with their change."""
    for one in chosen:
        tests = mirrored(tree, place, one.module_path.relative_to(tree))
        result = mutate_and_test([one], command(tests), TIMEOUT_S)
        if not result.is_killed:
            print(
                f"survived: {one.module_path.relative_to(tree)}:{one.start_pos[0]} {one.operator_name}\n{result.diff}",
                flush=True,
            )
        yield result.is_killed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("places", nargs="*", default=[*MUTATED], help="what is mutated; by default all of it")
    parser.add_argument("--each", type=int, default=15, help="mutants of each place")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if unknown := [place for place in arguments.places if place not in MUTATED]:
        parser.error(f"{', '.join(unknown)}: expected some of {', '.join(MUTATED)}")
    killed: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        tree = copied(Path(name) / "tree")
        os.environ["PYTHONPATH"] = str(tree)
        os.chdir(tree)
        for place in arguments.places:
            every = mutations(tree, place, Path(name) / "work.sqlite")
            chosen = random.Random(arguments.seed).sample(every, min(arguments.each, len(every)))
            killed[place] = sum(tried(tree, place, chosen))
            if killed[place] == len(chosen):  # a survivor shows that the tests pass on this copy; without one, see
                subprocess.run(shlex.split(command(list(MUTATED[place]))), check=True, capture_output=True)
            print(f"{place}: {killed[place]} of {len(chosen)} killed, {len(every)} mutants in all", flush=True)


if __name__ == "__main__":
    main()
