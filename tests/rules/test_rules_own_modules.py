"""Rules of a module that a person names: found, checked, and never taken from the folder of the data."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gpudiag.errors import ConfigError
from gpudiag.rules import RULES
from gpudiag.rules._engine.own import chosen_rules, own_rules

MODULE = '''
from pathlib import Path
from gpudiag.measures.memory import measure_memory
from gpudiag.rules._engine.rule import rule

Path(__file__).with_suffix(".ran").touch()


@rule(measure=measure_memory, severity="warning", title="Room is left", remedy="Run one trial more.")
def nightly_room(memory, *, min_left_mib: float = 8000.0):
    """Room for the nightly job. Source: its own log."""
    return None
'''


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module that leaves a mark where it was run, importable by the name nightly_rules."""
    path = tmp_path / "code" / "nightly_rules.py"
    path.parent.mkdir()
    path.write_text(MODULE)
    monkeypatch.syspath_prepend(str(path.parent))
    monkeypatch.delitem(sys.modules, "nightly_rules", raising=False)
    return path


@pytest.mark.parametrize("by_file", [False, True])
def test_rules_of_a_module_by_name_and_by_file(module: Path, by_file: bool) -> None:
    (found,) = own_rules([str(module) if by_file else "nightly_rules"])
    assert found.id == "nightly-room" and found.thresholds == {"min_left_mib": 8000.0}
    assert module.with_suffix(".ran").exists()


def test_a_module_in_the_folder_of_the_data_is_not_imported_by_name(module: Path) -> None:
    with pytest.raises(ConfigError, match="lies in the folder of the run"):
        own_rules(["nightly_rules"], data_folder=module.parent)
    assert not module.with_suffix(".ran").exists()
    assert own_rules([str(module)], data_folder=module.parent), "its file was named: that is a person's word"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no_such_module_here", "there is no module 'no_such_module_here'"),
        ("a b", "expected an import path"),
        ("./no_such.py", "no such file"),
        ("json", "holds no rule"),
        ("os.path.no", "cannot be imported"),
    ],
)
def test_what_cannot_be_imported_is_said(name: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        own_rules([name])


def test_a_module_that_fails_is_named(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("1 / 0\n")
    with pytest.raises(ConfigError, match=r"broken\.py: cannot be imported \(ZeroDivisionError: division by zero\)"):
        own_rules([str(tmp_path / "broken.py")])


def test_a_module_below_a_folder_that_may_be_imported_is_not_taken_from_the_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "many_runs" / "one_run" / "brought_rules.py"
    path.parent.mkdir(parents=True)
    path.write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))  # as a script in the folder above has it
    with pytest.raises(ConfigError, match=r"module 'many_runs\.one_run' lies in the folder of the run"):
        own_rules(["many_runs.one_run.brought_rules"], data_folder=path.parent)
    assert not path.with_suffix(".ran").exists()
    assert own_rules(["many_runs.one_run.brought_rules"]) and path.with_suffix(".ran").exists()


def test_an_id_is_taken_once(tmp_path: Path, module: Path) -> None:
    taken = tmp_path / "taken.py"
    taken.write_text(MODULE.replace("nightly_room", "memory_headroom"))
    with pytest.raises(ConfigError, match="there is a rule 'memory-headroom' in gpudiag already; rename the function"):
        own_rules([str(taken)])
    with pytest.raises(ConfigError, match=r"taken\.py: there is a rule 'nightly-room' in nightly_rules already"):
        taken.write_text(MODULE)
        own_rules(["nightly_rules", str(taken)])


def test_rules_that_a_module_imports_count_once(tmp_path: Path, module: Path) -> None:
    both = tmp_path / "both.py"
    both.write_text("from gpudiag.rules.memory import *\nfrom nightly_rules import nightly_room\n")
    assert [rule.id for rule in own_rules([str(both), "nightly_rules"])] == ["nightly-room"]


def test_the_rules_to_judge_by(module: Path) -> None:
    (own,) = own_rules(["nightly_rules"])
    assert chosen_rules(None) == chosen_rules("") == RULES
    assert chosen_rules(" nightly_rules ,") == (*RULES, own) == chosen_rules(None, ["nightly_rules"])
    assert chosen_rules([own], ["no_such_module"]) == (own,), "rules given in Python are those and no others"
    with pytest.raises(ConfigError, match="there are 2 rules 'nightly-room'"):
        chosen_rules((own, own))
    with pytest.raises(ConfigError, match="lies in the folder of the run"):
        chosen_rules(None, ["nightly_rules"], module.parent)
