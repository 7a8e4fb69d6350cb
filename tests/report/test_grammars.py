"""Grammars that no notebook needs are compiled when an address is checked."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from gpudiag.report._notebook import grammars

PACKAGE = '''
"""A package that notes when it is imported."""
import sys
sys.compiled = getattr(sys, "compiled", 0) + 1
TERMS = ["iri"]
def is_valid_syntax(term, value):
    return term in TERMS and value == "ok"
'''


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package of the name, not imported yet."""
    (tmp_path / grammars.PACKAGE).mkdir()
    (tmp_path / grammars.PACKAGE / "__init__.py").write_text(PACKAGE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, grammars.PACKAGE, None)  # put back afterwards
    monkeypatch.delitem(sys.modules, grammars.PACKAGE)
    monkeypatch.setattr(sys, "compiled", 0, raising=False)


def test_the_package_is_compiled_when_it_is_asked_and_answers_itself(package: None) -> None:
    grammars.put_off()
    waiting = importlib.import_module(grammars.PACKAGE)
    check = waiting.is_valid_syntax
    assert not hasattr(waiting, "__wrapped__") and Path(str(waiting.__file__)).is_file()
    assert sys.compiled == 0  # type: ignore[attr-defined]
    assert check("iri", "ok") and not check("iri", "no") and not check("uri", "ok")
    assert sys.compiled == 1 and importlib.import_module(grammars.PACKAGE) is not waiting  # type: ignore[attr-defined]


def test_every_other_name_is_there_as_well(package: None) -> None:
    grammars.put_off()
    assert importlib.import_module(grammars.PACKAGE).TERMS == ["iri"]
    with pytest.raises(AttributeError, match="TERM"):
        importlib.import_module(grammars.PACKAGE).TERM  # noqa: B018


def test_where_it_is_imported_or_absent_nothing_is_put_off(package: None, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.import_module(grammars.PACKAGE)
    grammars.put_off()
    assert sys.modules[grammars.PACKAGE] is real
    monkeypatch.setattr(grammars, "PACKAGE", "no_such_package_here")
    grammars.put_off()
    assert "no_such_package_here" not in sys.modules
