"""Storage URLs: what they name, and that no password ever comes out."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

import pytest
from handmade_studies import frozen, sqlite_study

from gpudiag.errors import InputError, InputNotFound
from gpudiag.readers._io.url import sqlite_path, without_secrets
from gpudiag.readers.trials import is_url, optuna_server, read_trials, show_url


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sqlite:///optuna.db", "sqlite:///optuna.db"),
        ("postgresql://u:pw@h:5432/d", "postgresql://u:***@h:5432/d"),
        ("postgresql+psycopg://u@h/d", "postgresql+psycopg://u@h/d"),
        ("mysql+pymysql://u:p%40w@h/d?charset=utf8", "mysql+pymysql://u:***@h/d?charset=utf8"),
        ("redis://:pw@h:6379/0", "redis://:***@h:6379/0"),
        ("postgresql://u:a@b/c@h/d", "postgresql://u:***@h/d"),
        ("postgresql://h/d?user=u&password=pw&sslmode=require", "postgresql://h/d?user=u&password=***&sslmode=require"),
        ("mysql://h/d?ssl_key=pw", "mysql://h/d?ssl_key=***"),
    ],
)
def test_a_url_is_shown_without_its_password(url: str, shown: str) -> None:
    assert show_url(url) == shown
    assert "pw" not in shown


def test_what_a_driver_says_is_cleaned() -> None:
    said = "could not connect with\n p@w, p%40w or key=tok"
    cleaned = without_secrets(said, "postgresql://u:p%40w@h/d?token=tok")
    assert cleaned == "could not connect with ***, *** or key=***"


@pytest.mark.parametrize(("text", "expected"), [("sqlite:///a.db", True), ("C:\\runs\\a.db", False), ("a.db", False)])
def test_what_is_a_url(text: str, expected: bool) -> None:
    assert is_url(text) is expected
    assert is_url(Path(text)) is False


@pytest.mark.parametrize(
    ("named", "module", "used"),
    [
        ("postgresql+psycopg2", "psycopg2", "postgresql+psycopg"),
        ("postgresql+asyncpg", "", "postgresql+psycopg"),  # never for a reader that does not run in an event loop
        ("mysql+mysqldb", "MySQLdb", "mysql+pymysql"),
        ("postgresql+psycopg", "", "postgresql+psycopg"),
        ("mysql+pymysql", "", "mysql+pymysql"),
    ],
)
def test_a_driver_that_is_not_there_is_replaced(
    named: str, module: str, used: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = {"postgresql": ("psycopg",), "mysql": ("pymysql",)}
    pytest.importorskip(installed[named.partition("+")[0]][0])
    monkeypatch.setattr(optuna_server, "_DRIVERS", installed)
    if module:
        monkeypatch.setitem(sys.modules, module, None)
    assert str(optuna_server.with_driver(f"{named}://u@h/d?x=1")) == f"{used}://u@h/d?x=1"


@pytest.mark.slow
def test_sqlite_urls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = sqlite_study(tmp_path / "o.db", frozen(0))
    monkeypatch.chdir(tmp_path)
    for url in (f"sqlite:///{path}", "sqlite:///o.db", "sqlite:///./o.db", f"sqlite+pysqlite:///{path}?timeout=5"):
        assert len(read_trials(url).trials) == 1
    assert sqlite_path("sqlite:///file:o.db?mode=ro&uri=true") == Path("o.db")
    with pytest.raises(InputNotFound, match=r"gone\.db"):
        read_trials("sqlite:///gone.db")
    assert not (tmp_path / "gone.db").exists()
    for memory in ("sqlite://", "sqlite:///:memory:"):
        with pytest.raises(InputError, match="pass the Study object"):
            read_trials(memory)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://u:hunter2@127.0.0.1:1/d", "cannot be read"),
        ("mysql+pymysql://u:hunter2@127.0.0.1:1/d", "cannot be read"),
        ("redis://:hunter2@127.0.0.1:1/0", "cannot be read"),
        ("postgresql://u:hunter2@127.0.0.1:notaport/d", "cannot be read"),
        ("nonsense://u:hunter2@h/d", "cannot be read"),
        ("oracle+nosuch://u:hunter2@h/d", "cannot be read|needs the package"),
        ("https://u:hunter2@h/optuna.db", "is no storage URL"),
    ],
)
def test_errors_are_one_sentence_without_the_password(url: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        read_trials(url)
    printed = "".join(traceback.format_exception(caught.value))
    assert "hunter2" not in printed + repr(caught.value)
    assert "\n" not in str(caught.value)


def test_an_object_that_is_nothing_we_know() -> None:
    with pytest.raises(InputError, match="expected a path, a storage URL, a Study or a list of FrozenTrial, got dict"):
        read_trials({})  # type: ignore[arg-type]
