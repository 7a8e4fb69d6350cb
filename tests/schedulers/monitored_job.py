"""What a Prometheus holds of some GPUs, with known truth, and a server that answers from it as Prometheus does.

Job 4711 of Slurm had both GPUs of n1 and the first of n2, for ten minutes; before and after that they were job 4712's.
n2 was down for three of the minutes. The pod trainer-0 had one GPU in Kubernetes, whose exporter is DCGM's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs

START_S = 1_767_225_600
"""2026-01-01 00:00 UTC."""
SCRAPE_S = 30
JOB_S = (START_S + 600, START_S + 1200)
"""The first and the last scrape in which job 4711 is seen."""
DOWN_S = (START_S + 810, START_S + 960)
"""The first and the last scrape that n2 lacks."""
GIB = 2**30
PLACES = (("n1", 0), ("n1", 1), ("n2", 0))
Labels = Mapping[str, str]
Samples = list[tuple[int, float]]


def util_pct(at: int, time_s: int) -> float:
    """Of GPU ``at`` of PLACES, another one at each scrape."""
    return (time_s // SCRAPE_S * (at + 3)) % 101


def slurm_series() -> Iterator[tuple[Labels, Samples]]:
    for at, (host, gpu) in enumerate(PLACES):
        times = [START_S + k * SCRAPE_S for k in range(60)]
        if host == "n2":
            times = [time for time in times if not DOWN_S[0] <= time <= DOWN_S[1]]
        about = {
            "instance": f"{host}:9445",
            "minor_number": str(gpu),
            "uuid": f"GPU-{at}cdcdcdc",
            "name": "NVIDIA H200",
        }
        yield about | {"__name__": "nvidia_gpu_duty_cycle"}, [(t, util_pct(at, t)) for t in times]
        yield about | {"__name__": "nvidia_gpu_memory_used_bytes"}, [(t, (at + 1) * GIB) for t in times]
        yield about | {"__name__": "nvidia_gpu_power_usage_milliwatts"}, [(t, 300_500.0) for t in times]
        yield (
            about | {"__name__": "nvidia_gpu_jobId"},
            [(t, 4711 if JOB_S[0] <= t <= JOB_S[1] else 4712) for t in times],
        )
    # a GPU that the job never had
    other = {"instance": "n2:9445", "minor_number": "1", "uuid": "GPU-fcdcdcdc", "name": "NVIDIA H200"}
    times = [START_S + k * SCRAPE_S for k in range(60)]
    yield other | {"__name__": "nvidia_gpu_duty_cycle"}, [(t, 99.0) for t in times]
    yield other | {"__name__": "nvidia_gpu_jobId"}, [(t, 4713) for t in times]


def pod_series() -> Iterator[tuple[Labels, Samples]]:
    about = {"Hostname": "k1", "gpu": "3", "UUID": "GPU-9cdcdcdc", "modelName": "NVIDIA L4", "namespace": "ml"}
    for pod, util in (("trainer-0", 70.0), ("trainer-00", 10.0)):
        mine = about | {"pod": pod, "gpu": "3" if pod == "trainer-0" else "4", "UUID": f"GPU-{int(util)}dcdcdc"}
        times = [START_S + k * SCRAPE_S for k in range(20)]
        util_values = [float("nan") if k == 5 else util for k in range(20)]
        yield mine | {"__name__": "DCGM_FI_DEV_GPU_UTIL"}, list(zip(times, util_values, strict=True))
        yield mine | {"__name__": "DCGM_FI_DEV_FB_USED"}, [(t, 1000.0) for t in times]
        # the counter begins anew when the driver is loaded again
        yield (
            mine | {"__name__": "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"},
            [(t, 1e6 * (k % 10)) for k, t in enumerate(times)],
        )


ALL = [*slurm_series(), *pod_series()]
_RANGE = re.compile(r"last_over_time\((\w*)(?:\{__name__=~\"([^\"]+)\",(\w+)=(\"(?:[^\"\\]|\\.)*\")\})?\[(\d+)s\]\)")
_OF_JOB = re.compile(r" and \(last_over_time\(nvidia_gpu_jobId\[(\d+)s\]\) == (\d+)\)$")


def evaluated(query: str, start_s: float, end_s: float, step_s: int) -> list[dict[str, Any]]:
    """A query of those that are asked, as PromQL means it."""
    his = _OF_JOB.search(query)
    wanted = _RANGE.findall(_OF_JOB.sub("", query))
    assert _RANGE.sub("", _OF_JOB.sub("", query)).replace(" or ", "") == "", query
    out = []
    for labels, samples in ALL:
        windows = [
            int(window)
            for name, names, label, value, window in wanted
            if (labels["__name__"] == name if name else re.fullmatch(names.replace("\\\\", "\\"), labels["__name__"]))
            and (not label or labels.get(label) == json.loads(value))
        ]
        if not windows:
            continue
        points = [
            [t, str(value).replace("nan", "NaN")]
            for t in (start_s + k * step_s for k in range(int((end_s - start_s) // step_s) + 1))
            if (value := last(samples, t, windows[0])) is not None
            and (his is None or last(jobs_of(labels), t, int(his[1])) == int(his[2]))
        ]
        if points:
            out.append({"metric": dict(labels), "values": points})
    return out


def last(samples: Samples, time_s: float, window_s: int) -> float | None:
    """With both ends of the window, as up to version 2."""
    return next((value for t, value in reversed(samples) if time_s - window_s <= t <= time_s), None)


def jobs_of(labels: Labels) -> Samples:
    mine = dict(labels) | {"__name__": "nvidia_gpu_jobId"}
    return next((samples for other, samples in ALL if other == mine), [])


@dataclass
class Served:
    """A server: what it was asked, with the headers, and how it answers otherwise than from ALL."""

    url: str = ""
    asked: list[dict[str, str]] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    answer: Any = None
    """A function of the request handler, which then answers."""


@contextmanager
def served() -> Iterator[Served]:
    about = Served()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = {key: values[0] for key, values in parse_qs(body).items()}
            about.asked.append(form)
            about.headers.append({key.lower(): value for key, value in self.headers.items()})
            if about.answer is not None:
                about.answer(self)
                return
            assert self.path == "/api/v1/query_range"
            start, end, step = float(form["start"]), float(form["end"]), int(form["step"])
            if (end - start) // step >= 11_000:
                error = "exceeded maximum resolution of 11,000 points per timeseries."
                reply(self, 400, {"status": "error", "errorType": "bad_data", "error": error})
                return
            result = evaluated(form["query"], start, end, step)
            reply(self, 200, {"status": "success", "data": {"resultType": "matrix", "result": result}})

        do_GET = do_POST

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    about.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield about
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def reply(handler: BaseHTTPRequestHandler, status: int, content: object, **headers: str) -> None:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)
