"""Telemetry of a job from a Prometheus: a server of ours that answers as the API does, and the real one where it is."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.request import ProxyHandler, build_opener

import pandas as pd
import pytest
from commandline import called
from monitored_job import (
    ALL,
    DOWN_S,
    JOB_S,
    PLACES,
    SCRAPE_S,
    START_S,
    Served,
    reply,
    served,
    util_pct,
)

import gpudiag as gd
from gpudiag.errors import ConfigError
from gpudiag.schedulers.prometheus.api import Access, Prometheus
from gpudiag.schedulers.prometheus.job_samples import MOST_POINTS, Asked

SPAN = ("--start", "2026-01-01T00:00:00Z", "--end", "2026-01-01T00:30:00Z")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    for name in ("TOKEN", "USER", "PASSWORD"):
        monkeypatch.delenv(f"GPUDIAG_PROMETHEUS_{name}", raising=False)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # nothing is there
    with served() as about:
        yield about


def fetch(monkeypatch: pytest.MonkeyPatch, url: str, job: str, folder: Path, *more: str) -> int:
    return called(monkeypatch, "fetch", "prometheus", "--url", url, "--job", job, "-o", folder, *(more or SPAN))


def truth() -> dict[tuple[str, int], float]:
    """Utilization of the job by uuid and second."""
    out = {}
    for at, (host, _) in enumerate(PLACES):
        for time_s in range(JOB_S[0], JOB_S[1] + 1, SCRAPE_S):
            if host == "n1" or not DOWN_S[0] <= time_s <= DOWN_S[1]:
                out[f"GPU-{at}cdcdcdc", time_s] = util_pct(at, time_s)
    return out


def found(run: gd.Run, column: str = "util_pct") -> dict[tuple[str, int], float]:
    uuids = dict(zip(run.gpus["gpu"], run.gpus["uuid"], strict=True))
    seconds = (run.gpu["time"] - pd.Timestamp(0, tz="UTC")) // pd.Timedelta(seconds=1)
    return {
        (uuids[gpu], int(second)): value
        for gpu, second, value in zip(run.gpu["gpu"], seconds, run.gpu[column], strict=True)
    }


def test_a_job_of_slurm_by_the_metrics_of_jobstats(
    server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    assert fetch(monkeypatch, server.url, "trainer-0", folder) == 0
    assert fetch(monkeypatch, server.url, "4711", folder) == 0, "what was fetched before is replaced"
    n = len(truth())
    assert f"prometheus.json: {n} samples of 3 GPUs. Next: gpudiag report" in capsys.readouterr().out.replace("\n", " ")
    run = gd.load_run(folder)
    assert found(run) == truth(), "nothing of the job before or after, and nothing while the host was down"
    assert set(run.gpus["gpu"]) == {"n1:9445/0", "n1:9445/1", "n2:9445/0"}
    assert set(run.gpu.groupby("gpu", observed=True)["mem_used_mib"].first()) == {1024.0, 2048.0, 3072.0}
    assert set(run.gpu["power_w"]) == {300.5}
    assert "temp_c" not in run.gpu


def test_a_pod_by_the_metrics_of_dcgm(server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert fetch(monkeypatch, server.url, "trainer-0", tmp_path) == 0
    run = gd.load_run(tmp_path)
    assert list(run.gpus["gpu"]) == ["3"] and list(run.gpus["name"]) == ["NVIDIA L4"]
    values = list(run.gpu["util_pct"])
    assert len(values) == 20 and [at for at, value in enumerate(values) if value != value] == [5]
    assert {value for value in values if value == value} == {70.0}
    assert list(run.gpu["energy_j"]) == [1000.0 * (k % 10) for k in range(20)], "as it was counted, resets and all"
    assert not any("jobId" in form["query"] for form in server.asked), "a name is no number of a job"


@pytest.mark.slow
def test_windows_hold_what_prometheus_answers_and_no_instant_twice(
    server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six days at 30 s are 17,281 points: two windows. The job lies across their edge."""
    edge_s = START_S + 900
    start_s = edge_s - (MOST_POINTS - 1) * SCRAPE_S
    end_s = start_s + 6 * 86_400
    times = [pd.Timestamp(s, unit="s", tz="UTC").isoformat() for s in (start_s, end_s)]
    assert fetch(monkeypatch, server.url, "4711", tmp_path, "--start", times[0], "--end", times[1]) == 0
    assert found(gd.load_run(tmp_path)) == truth()
    text = json.loads((tmp_path / "prometheus.json").read_text(encoding="utf-8"))
    for series in text["data"]["result"]:
        seconds = [point[0] for point in series["values"]]
        assert seconds == sorted(set(seconds))
    assert len(text["data"]["result"]) == 9, "three metrics of three GPUs, each one series"
    edges = {(int(float(form["start"])), int(float(form["end"]))) for form in server.asked}
    assert edges == {(start_s, edge_s), (edge_s + SCRAPE_S, end_s)}


def test_windows_begin_at_multiples_of_the_step_and_stay_within_what_was_asked() -> None:
    assert list(Asked("1", 1001, 1099, 30).windows()) == [(1020, 1080)]
    assert list(Asked("1", 1001, 1019, 30).windows()) == []
    assert list(Asked("1", 0, 30 * MOST_POINTS, 30).windows()) == [
        (0, 30 * (MOST_POINTS - 1)),
        (30 * MOST_POINTS, 30 * MOST_POINTS),
    ]


def test_what_a_job_is_called_is_no_part_of_the_query() -> None:
    queries = list(Asked('a"} or up{x="\\\n', 0, 100).queries())
    assert len(queries) == 1 and queries[0].count('="a\\"} or up{x=\\"\\\\\\n"}[30s])') == 4


def _pod(namespace: str, host: str, first: int = 0) -> dict[str, object]:
    metric = {
        "__name__": "DCGM_FI_DEV_GPU_UTIL", "gpu": "0", "UUID": f"GPU-{host}", "Hostname": host, "pod": "worker-0",
        "namespace": namespace,
    }  # fmt: skip
    return {"metric": metric, "values": [[START_S + 30 * k, "50"] for k in range(first, first + 10)]}


def _answers(server: Served, *series: dict[str, object]) -> None:
    content = {"status": "success", "data": {"resultType": "matrix", "result": list(series)}}
    server.answer = lambda handler: reply(handler, 200, content)


def test_pods_of_several_namespaces_are_several_jobs(
    server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _answers(server, _pod("team-a", "n1"), _pod("team-b", "n7"))
    assert fetch(monkeypatch, server.url, "worker-0", tmp_path / "run") == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "worker-0: is a pod in each of the namespaces team-a, team-b" in said and "--namespace" in said
    assert not (tmp_path / "run").exists()


def test_a_namespace_is_asked_for_under_the_name_that_goes_with_the_label_of_the_pod(
    server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _answers(server, _pod("team-a", "n1"))
    assert fetch(monkeypatch, server.url, "worker-0", tmp_path, *SPAN, "--namespace", "team-a") == 0
    (query,) = (form["query"] for form in server.asked)
    for pod, namespace in (("pod", "namespace"), ("exported_pod", "exported_namespace"), ("pod_name", "pod_namespace")):
        assert f',{pod}="worker-0",{namespace}="team-a"}}[30s])' in query
    assert "hpc_job" not in query, "a job of Slurm has no namespace"


@pytest.mark.parametrize(("first", "n_hosts"), [(0, 2), (9, 1), (20, 1)], ids=["at once", "moved", "later"])
def test_pods_of_one_name_on_two_hosts_at_once_are_said_to_be_several(
    first: int, n_hosts: int, server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    _answers(server, _pod("ml", "n1"), _pod("ml", "n2", first))
    assert fetch(monkeypatch, server.url, "worker-0", tmp_path) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert ("Pods worker-0 ran on n1, n2 at the same time: these are several jobs" in said) == (n_hosts == 2)


def test_no_sample_says_what_was_looked_for(
    server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fetch(monkeypatch, server.url, "99", tmp_path / "run") == 2
    said = capsys.readouterr().err
    for part in ("no sample of 99", "2026-01-01T00:30:00Z", "hpc_job, pod", "nvidia_gpu_duty_cycle", "--start"):
        assert part in said
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_token_or_a_password_is_sent_and_never_shown(
    server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def repeats(handler: BaseHTTPRequestHandler) -> None:
        given = handler.headers["Authorization"]
        reply(handler, 403, {"status": "error", "errorType": "forbidden", "error": f"no entry for {given} \x1b[31m"})

    server.answer = repeats
    monkeypatch.setenv("GPUDIAG_PROMETHEUS_TOKEN", "s3cret-token")
    assert fetch(monkeypatch, server.url, "1", tmp_path) == 2
    assert server.headers[-1]["authorization"] == "Bearer s3cret-token"
    said = capsys.readouterr()
    assert "HTTP 403: forbidden no entry for Bearer ***" in said.err and "s3cret" not in said.err + said.out
    assert "\x1b" not in said.err
    server.answer = None
    monkeypatch.delenv("GPUDIAG_PROMETHEUS_TOKEN")
    monkeypatch.setenv("GPUDIAG_PROMETHEUS_USER", "ada")
    monkeypatch.setenv("GPUDIAG_PROMETHEUS_PASSWORD", "pä:ss")
    assert fetch(monkeypatch, server.url, "4711", tmp_path) == 0
    assert server.headers[-1]["authorization"] == "Basic YWRhOnDDpDpzcw=="
    assert "pä" not in (tmp_path / "prometheus.json").read_text(encoding="utf-8")
    assert "s3cret" not in repr(Prometheus(server.url, Access("s3cret-token", "ada", "s3cret")))
    monkeypatch.setenv("GPUDIAG_PROMETHEUS_TOKEN", "s3cret\ntoken")
    assert fetch(monkeypatch, server.url, "1", tmp_path) == 2
    assert "s3cret" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://ada:s3cret@127.0.0.1:1", "holds a user, a password"),
        ("http://127.0.0.1:1/?token=s3cret", "holds a user, a password"),
        ("ftp://127.0.0.1", "is no address"),
        ("127.0.0.1:9090", "is no address"),
        ("http://127.0.0.1:port", "is no address"),
        ("http:///api", "is no address"),
        ("http://127.0.0.1/a b", "is no address"),
        ("http://127.0.0.1:1", "cannot be asked (Connection refused)"),
    ],
)
def test_an_address_that_is_none_is_refused(
    url: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fetch(monkeypatch, url, "1", tmp_path / "run") == 2
    error = capsys.readouterr().err
    assert said in error and "s3cret" not in error and error.count("\n") == 1


def leads_away(handler: BaseHTTPRequestHandler) -> None:
    reply(handler, 302, b"", Location="http://u:s3cret@127.0.0.2:1/login")


def slow(handler: BaseHTTPRequestHandler) -> None:
    """A byte now and then, so that no single read takes long."""
    handler.send_response(200)
    handler.end_headers()
    with suppress(OSError):
        for _ in range(40):
            handler.wfile.write(b" ")
            handler.wfile.flush()
            time.sleep(0.05)


def silent(handler: BaseHTTPRequestHandler) -> None:
    time.sleep(0.8)


def cut(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b"{")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda handler: reply(handler, 200, b"<html>"), "did not answer as the API of Prometheus does"),
        (lambda handler: reply(handler, 200, b"[" * 100_000), "did not answer as the API"),
        (lambda handler: reply(handler, 200, {"status": "success", "data": {"result": 3}}),
         "did not answer as the API"),
        (lambda handler: reply(handler, 200, {"status": "error", "data": {}}), "did not answer as the API"),
        (lambda handler: reply(handler, 422, {"errorType": "execution", "error": "too many\n samples"}),
         "HTTP 422: execution too many samples."),
        (lambda handler: reply(handler, 401, b"<p>who?"),
         "HTTP 401; it asks who you are: set GPUDIAG_PROMETHEUS_TOKEN"),
        (lambda handler: reply(handler, 503, b""), "HTTP 503."),
        (leads_away, "leads to another address (HTTP 302), http://u:***@127.0.0.2:1/login"),
        (slow, "did not answer within 0.3 s"),
        (silent, "did not answer within 0.3 s"),
        (cut, "ended in the middle of its answer"),
    ],
)  # fmt: skip
def test_what_else_a_server_answers_is_one_sentence(
    answer: object,
    said: str,
    server: Served,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    server.answer = answer
    began = time.monotonic()
    assert fetch(monkeypatch, server.url, "1", tmp_path / "run", *SPAN, "--timeout", "0.3") == 2
    assert time.monotonic() - began < 1.9
    error = capsys.readouterr().err
    assert said in error and "s3cret" not in error and error.count("\n") == 1, error
    assert len(server.asked) == 1 and not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--start", "yesterday"), "--start must be a time"),
        (("--start", "2026-01-02", "--end", "2026-01-01"), "must be later than --start"),
        (("--step", "0"), "--step must be 1 s or more"),
        (("--timeout", "nan"), "--timeout must be"),
        (("--start", "0001-01-01T00:00Z", "--step", "1"), "raise --step"),
    ],
)
def test_options_are_checked_before_anything_is_asked(
    options: tuple[str, ...], said: str, server: Served, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    assert fetch(monkeypatch, server.url, "1", tmp_path, *options) == 2
    assert said in capsys.readouterr().err and not server.asked


def test_another_file_of_that_name_is_kept(server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "prometheus.json").write_text("{}", encoding="utf-8")
    assert fetch(monkeypatch, server.url, "4711", tmp_path) == 2
    assert not server.asked and (tmp_path / "prometheus.json").read_text(encoding="utf-8") == "{}"


def test_times_without_a_zone_are_local(server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    local = ("--start", "2026-01-01T08:00", "--end", "2026-01-01T08:30", "--timezone", "Asia/Taipei")
    assert fetch(monkeypatch, server.url, "4711", tmp_path, *local) == 0
    assert {(form["start"], form["end"]) for form in server.asked} == {(f"{START_S}.001", f"{START_S + 1800}.001")}


def test_an_empty_job_is_refused() -> None:
    with pytest.raises(ConfigError, match="expected the id of a job"):
        Asked(" ", 0, 100)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("prometheus") is None, reason="Prometheus is not installed")
def test_the_real_prometheus_means_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: Served) -> None:
    """The truth as blocks of a database, written by promtool; both servers then give the same files."""
    lines = []
    names = sorted({labels["__name__"] for labels, _ in ALL})
    for name in names:
        lines.append(f"# TYPE {name} gauge")
        for labels, samples in ALL:
            if labels["__name__"] == name:
                inner = ",".join(f'{key}="{value}"' for key, value in labels.items() if key != "__name__")
                lines += [f"{name}{{{inner}}} {value} {time_s}" for time_s, value in samples]
    (tmp_path / "truth.om").write_text("\n".join([*lines, "# EOF", ""]), encoding="utf-8")
    database = tmp_path / "database"
    subprocess.run(
        ["promtool", "tsdb", "create-blocks-from", "openmetrics", tmp_path / "truth.om", database],
        check=True,
        capture_output=True,
    )
    (tmp_path / "prometheus.yml").write_text("global: {}\n", encoding="utf-8")
    address = f"127.0.0.1:{free_port()}"
    real = subprocess.Popen(
        [
            "prometheus", f"--config.file={tmp_path / 'prometheus.yml'}", f"--storage.tsdb.path={database}",
            f"--web.listen-address={address}", "--storage.tsdb.retention.time=100y", "--log.level=error",
        ]
    )  # fmt: skip
    try:
        ready(f"http://{address}/-/ready")
        for job in ("4711", "trainer-0"):
            made = {}
            for name, url in (("ours", server.url), ("real", f"http://{address}")):
                assert fetch(monkeypatch, url, job, tmp_path / name / job) == 0
                text = json.loads((tmp_path / name / job / "prometheus.json").read_text(encoding="utf-8"))
                made[name] = [
                    (series["metric"], [(t, float(value)) for t, value in series["values"] if value != "NaN"])
                    for series in text["data"]["result"]
                ]
            assert made["ours"] == made["real"]
    finally:
        real.terminate()
        real.wait(timeout=20)


def free_port() -> int:
    import socket

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def ready(url: str) -> None:
    for _ in range(200):
        with suppress(OSError), build_opener(ProxyHandler({})).open(url, timeout=1):
            return
        time.sleep(0.1)
    pytest.fail("Prometheus did not start")
