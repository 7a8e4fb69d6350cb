"""How many planted faults the tests notice: a seeded sample of Cosmic Ray's mutations, each against the mirrored tests.

The tree is copied first and only the copy is mutated. A mutant is killed if a test fails or takes too long. Rules,
recommendations, measures and the formatter of numbers are where a wrong number would be born, so these are sampled;
annotations and decorators are left out, since what is changed there does not run.
"""

from __future__ import annotations

import argparse
import os
import random
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
MUTATED = {
    "gpudiag/rules": ("tests/rules",),
    "gpudiag/advice": ("tests/advice",),
    "gpudiag/measures": ("tests/measures", "tests/rules"),
    "gpudiag/report/format.py": ("tests/report/test_format.py",),
}
"""What is mutated, and the tests that ought to notice."""
LEFT_OUT = ("ReplaceBinaryOperator_BitOr", "RemoveDecorator", "ExceptionReplacer", "VariableInserter")
"""Operators that mostly change annotations (``X | None``) or what Python checks by itself."""
TIMEOUT_S = 600.0


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


def tried(tree: Path, place: str, chosen: list[MutationSpec]) -> Iterator[bool]:
    """Whether each mutant was killed; survivors are printed with their change."""
    command = f"{sys.executable} -m pytest -q -x -p no:cacheprovider -m 'not slow' {' '.join(MUTATED[place])}"
    for one in chosen:
        result = mutate_and_test([one], command, TIMEOUT_S)
        if not result.is_killed:
            print(
                f"survived: {one.module_path.relative_to(tree)}:{one.start_pos[0]} {one.operator_name}\n{result.diff}"
            )
        yield result.is_killed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--each", type=int, default=15, help="mutants of each place")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    killed: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        tree = copied(Path(name) / "tree")
        os.environ["PYTHONPATH"] = str(tree)
        os.chdir(tree)
        for place in MUTATED:
            every = mutations(tree, place, Path(name) / "work.sqlite")
            chosen = random.Random(arguments.seed).sample(every, min(arguments.each, len(every)))
            killed[place] = sum(tried(tree, place, chosen))
            print(f"{place}: {killed[place]} of {len(chosen)} killed, {len(every)} mutants in all", flush=True)


if __name__ == "__main__":
    main()
