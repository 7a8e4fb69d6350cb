"""The password of a storage URL stands in no output of any command, and never in the name of a run."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict
from itertools import product
from pathlib import Path

import pytest

import gpudiag as gd
from gpudiag._load.inspection import inspect
from gpudiag._load.sources import name_of
from gpudiag.cli import main
from gpudiag.readers._io.url import shown
from gpudiag.run import InputRecord

PASSWORDS = ("Plain9secret", "Pl@in9secret", "Plain:9secret", "Plain/9secret", "Plain#9secret", "Plain?9secret")
ENCODED = (
    "Plain%409secret",
    "Plain%3A9secret",
    "%50lain9secret",
    "Plain%2F9secret",
    "Plain9secret%",
    "Pl@in/9:sec#ret?",
)
SCHEMES = (
    *("postgresql", "postgresql+psycopg", "postgresql+nosuch", "mysql", "mysql+pymysql", "mariadb", "redis", "rediss"),
    *("http", "https", "ftp", "foo", "oracle", "sqlite", "PostgreSQL", "unix"),
)
FORMS = (
    "{}://me:{}@127.0.0.1:1/db",
    "{}://:{}@127.0.0.1:1",
    "{}://:{}@127.0.0.1:1/0",
    "{}://me:{}@127.0.0.1:port/db",
    "{}://me:{}@[::1]:1/db?a=b",
    "{}://127.0.0.1:1/db?user=me&password={}",
    "{}://me%3A{}@127.0.0.1:1/db",
    "{}:/me:{}@127.0.0.1:1/db",
)


def pieces(password: str) -> set[str]:
    """What of a password must not be seen: every part of it that is long enough to be told from other words."""
    return {part for part in ("lain9secret", "9secret", "9:sec", "Pl@in", "Plain") if part in password} | {password}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_inspect_shows_no_password_whatever_the_url(scheme: str) -> None:
    """Every pair of a scheme, a password and a form; of all three together every fourth."""
    combined = product(enumerate([*PASSWORDS, *ENCODED], SCHEMES.index(scheme)), enumerate(FORMS))
    for password, form in [(password, form) for (i, password), (j, form) in combined if (i + j) % 4 == 0]:
        url = form.format(scheme, password)
        record = next(inspect([url if form != FORMS[1] else Path(url)]))
        assert record.error is not None
        text = json.dumps(asdict(record))
        assert not [part for part in pieces(password) if part in text], f"{url} -> {text}"


@pytest.mark.parametrize("scheme", [scheme for scheme in SCHEMES if scheme != "sqlite"])
def test_no_name_of_a_run_holds_a_password(scheme: str) -> None:
    for password, form in product([*PASSWORDS, *ENCODED, "abc", "x"], FORMS[:7]):
        name = name_of([form.format(scheme, password)])
        kind = scheme.partition("+")[0].lower()
        assert name in {"db", kind, f"{kind}-127.0.0.1", f"{kind}-::1"}, f"{form} {password} -> {name}"


@pytest.mark.parametrize(
    ("inputs", "study", "name"),
    [
        (["redis://:secret@127.0.0.1:7791"], None, "redis-127.0.0.1"),
        (["redis://:secret@127.0.0.1:7791/0"], None, "redis-127.0.0.1"),
        (["redis://:secret@127.0.0.1:7791/0"], "lr-search", "lr-search"),
        (["postgresql://u:secret@db.example"], None, "postgresql-db.example"),
        (["postgresql+psycopg://u:secret@db.example/optuna?sslmode=require"], None, "optuna"),
        (["sqlite:///runs/search.db"], "lr-search", "search"),
        (["runs/gpu.csv"], None, "gpu"),
        (["runs/a/gpu.csv", "runs/b/optuna.db"], None, "runs"),
        (["runs/gpu.csv", "redis://:secret@h"], None, "gpu"),
        ([object()], None, "run"),
    ],
)
def test_what_a_run_is_called(inputs: list[object], study: str | None, name: str) -> None:
    assert name_of(inputs, study) == name


def test_a_record_cannot_hold_a_url_as_it_was_typed() -> None:
    record = InputRecord("redis://:hunter2@h", "unknown", error="redis://:hunter2@h: hunter2 is not the password")
    assert record.path == "redis://:***@h"
    assert record.error == "redis://:***@h: *** is not the password"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("gpu.csv", "gpu.csv"),
        ("C:\\runs\\me@home.csv", "C:\\runs\\me@home.csv"),
        ("a:b@c.csv", "a:b@c.csv"),
        ("sqlite:////home/me@work/o.db", "sqlite:////home/me@work/o.db"),
        ("redis://hunter2@h/0", "redis://***@h/0"),
        ("redis://:hunter2", "redis://***"),
        ("redis:/:hunter2@h", "redis:/:***@h"),
        ("postgresql://me@h:5432/d", "postgresql://me@h:5432/d"),
        ("postgresql://[::1]:5432/d", "postgresql://[::1]:5432/d"),
        ("postgresql://h/d?password=p@ss", "postgresql://h/d?password=***"),
        ("redis://:a?key=b@h/0", "redis://***"),
        ("mysql:dump.csv", "mysql:dump.csv"),
        ("postgresql//me:hunter2@h/d", "postgresql//me:***@h/d"),
    ],
)
def test_how_an_input_is_shown(given: str, said: str) -> None:
    assert shown(given) == said


@pytest.fixture(scope="module", params=["Plain9secret", "abc"])
def guarded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The URL of a Redis server with a password that holds a study, and the password."""
    server = shutil.which("redis-server")
    if server is None:
        if os.environ.get("GPUDIAG_REQUIRE_SERVERS") == "1":
            pytest.fail("redis-server is required but is not on this machine")
        pytest.skip("no redis-server on this machine")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = {"port": port, "bind": "127.0.0.1", "save": "", "requirepass": request.param, "appendonly": "no"}
    told = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    folder = tmp_path_factory.mktemp("redis")
    with subprocess.Popen([server, *told], cwd=folder, stdout=subprocess.DEVNULL) as process:
        try:
            url = f"redis://:{request.param}@127.0.0.1:{port}"
            _fill(url)
            yield url, request.param
        finally:
            process.terminate()


def _fill(url: str) -> None:
    import optuna
    import redis
    from optuna.storages.journal import JournalRedisBackend

    client = redis.Redis.from_url(url)
    for _ in range(100):
        try:
            client.ping()
            break
        except redis.ConnectionError:
            time.sleep(0.05)
    client.close()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        storage = optuna.storages.JournalStorage(JournalRedisBackend(url))
    study = optuna.create_study(storage=storage, study_name="search", pruner=optuna.pruners.NopPruner())
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1) ** 2, n_trials=5)


def seen(folder: Path, *texts: str) -> str:
    """All that came out: what was printed, the files and their names."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    written = [path.read_bytes().decode("utf-8", "replace") for path in files]
    return "\n".join([*texts, *(str(path.relative_to(folder)) for path in sorted(folder.rglob("*"))), *written])


@pytest.mark.many
@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ("diagnose", "--format", "text"),
        ("diagnose", "--format", "json", "--plan-out", "plan.json"),
        ("diagnose", "--format", "md"),
        ("diagnose", "--format", "junit"),
        ("whatif", "--parallel", "2"),
        ("whatif", "--parallel", "2", "--format", "json"),
        ("export", "--to", "csv"),
        ("export", "--to", "openmetrics"),
        ("export", "--to", "perfetto"),
        pytest.param(("report",), marks=pytest.mark.slow),
        pytest.param(("report", "--notebook", "hpo_report"), marks=pytest.mark.slow),
    ],
    ids=" ".join,
)
def test_no_output_holds_the_password(
    guarded: tuple[str, str],
    command: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    kept_kernel: None,
) -> None:
    url, password = guarded
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["gpudiag", *command, "--trials", url])
    try:
        main()
    except SystemExit as ended:
        assert not ended.code, capsys.readouterr().err
    out = capsys.readouterr()
    said = seen(tmp_path, out.out, out.err)
    assert "redis-127.0.0.1" in said
    assert f":{password}@" not in said and f":{password}" not in said and f"{password}-127" not in said
    if len(password) > 3:
        assert password not in said


@pytest.mark.slow
def test_a_comparison_and_its_report_hold_no_password(guarded: tuple[str, str]) -> None:
    url, password = guarded
    run = gd.Run.from_files(trials=url)
    made = gd.compare(run, run)
    assert run.info.name == "redis-127.0.0.1"
    for text in (made.to_json(), made.to_markdown(), made.summary(), repr(made), repr(run)):
        assert f":{password}" not in text and f"{password}@" not in text


def test_inspect_of_a_storage_that_can_be_read(
    guarded: tuple[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url, password = guarded
    for more in ([], ["--format", "json"], ["--study", "no-such-study"]):
        monkeypatch.setattr("sys.argv", ["gpudiag", "inspect", url, *more])
        try:
            main()
        except SystemExit as ended:
            assert bool(ended.code) == ("--study" in more)
        out = capsys.readouterr()
        assert "redis://:***@127.0.0.1" in out.out and f":{password}@" not in out.out + out.err


SLIPS = (
    ("diagnose", "run", "--preset", "URL"),
    ("diagnose", "run", "--preset=URL"),
    ("diagnose", "run", "--format", "URL"),
    ("diagnose", "run", "--fail-on", "URL"),
    ("diagnose", "run", "--set", "URL"),
    ("diagnose", "run", "--set", "gpu-unused.max_util_pct=URL"),
    ("diagnose", "run", "--timezone", "URL"),
    ("diagnose", "run", "--period", "URL"),
    ("diagnose", "run", "--columns", "URL"),
    ("diagnose", "run", "--suppress", "URL"),
    ("diagnose", "run", "--rules", "URL"),
    ("diagnose", "run", "--study", "URL"),
    ("diagnose", "run", "--telemetry", "URL"),
    ("diagnose", "URL", "--trials", "URL"),
    ("diagnose", "run", "--plan-out", "URL/plan.json"),
    ("diagnose", "run", "--URL"),
    ("report", "run", "--notebook", "URL"),
    ("report", "run", "--jobs", "URL"),
    ("report", "run", "-o", "URL"),
    ("report", "run", "-pURL"),
    ("report", "run", "-p", "URL=1"),
    ("report", "run", "-p", "minimal=URL"),
    ("compare", "run", "run", "--plan", "URL"),
    ("compare", "run", "URL.csv/x"),
    ("plans", "URL"),
    ("plans", ".", "URL"),
    ("whatif", "run", "--parallel", "URL"),
    ("whatif", "run", "--pruner", "URL"),
    ("export", "run", "--to", "URL"),
    ("convert", "URL", "-o", "x.parquet"),
    ("demo", "--case", "URL"),
    ("rules", "explain", "URL"),
    ("notebooks", "copy", "URL"),
    ("lab", "URL"),
    ("URL",),
)
SILENT = ("--telemetry", "--period", "--jobs")
"""Options whose error need not quote what was given."""


@pytest.mark.parametrize("slip", SLIPS, ids=" ".join)
@pytest.mark.parametrize("url", ["redis://:hunter2,x@h/0", "postgresql://me:hunter2@h/d", "redis:/:hunter2@h"])
def test_a_url_in_a_wrong_place_is_echoed_without_its_password(
    slip: tuple[str, ...],
    url: str,
    samples: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "run").mkdir()
    shutil.copy(samples / "tiny-batch-laptop" / "gpu.csv", tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("sys.argv", ["gpudiag", *(part.replace("URL", url) for part in slip)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    said = seen(tmp_path, *capsys.readouterr())
    assert "hunter2" not in said
    assert "***" in said or slip[2] in SILENT


def test_a_traceback_holds_no_password(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(folder: Path) -> None:
        raise RuntimeError(f"{folder} is odd")

    monkeypatch.setattr("gpudiag.comparison.calibration.calibration", fail)
    monkeypatch.setattr("sys.argv", ["gpudiag", "plans", "redis://:hunter2@h"])
    with pytest.raises(SystemExit) as ended:
        main()
    monkeypatch.setattr("sys.argv", ["gpudiag", "plans", "redis://:hunter2@h", "--debug"])
    assert ended.value.code == 3
    assert "hunter2" not in capsys.readouterr().err
