"""``gpudiag fetch``: telemetry of a job that the monitoring of a cluster has."""

from __future__ import annotations

import os
import time
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from gpudiag.cli._arguments import check_output, folder_name
from gpudiag.cli._console import say
from gpudiag.cli._options import Timezone
from gpudiag.errors import ConfigError

fetch_app = typer.Typer(help="Telemetry of a job from the monitoring of a cluster.", no_args_is_help=True)
DAY_S = 86_400


@fetch_app.callback()
def _fetch() -> None:
    """With a callback, the only command keeps its name."""


@fetch_app.command("prometheus")
def fetch_prometheus(
    url: Annotated[str, typer.Option("--url", metavar="URL", help="address of Prometheus, http://HOST:9090")],
    job: Annotated[str, typer.Option("--job", metavar="ID", help="id of a Slurm job, or name of a Kubernetes pod")],
    namespace: Annotated[str, typer.Option("--namespace", metavar="NAME", help="of the pod")] = "",
    start: Annotated[str, typer.Option("--start", metavar="TIME", help="default: a day before the end")] = "",
    end: Annotated[str, typer.Option("--end", metavar="TIME", help="ISO 8601; default: now")] = "",
    step: Annotated[int, typer.Option("--step", help="seconds between samples; best those between scrapes")] = 30,
    timeout: Annotated[float, typer.Option("--timeout", help="seconds for each answer")] = 60.0,
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="DIR", help="default: ./job-ID")] = None,
    timezone: Timezone = None,
) -> None:
    """Write what a Prometheus has of a job's GPUs (dcgm-exporter, nvidia_gpu_exporter, jobstats) into a run folder.

    A bearer token is taken from GPUDIAG_PROMETHEUS_TOKEN, a user and a password from GPUDIAG_PROMETHEUS_USER and
    GPUDIAG_PROMETHEUS_PASSWORD.
    """
    from gpudiag.readers.telemetry import read_telemetry
    from gpudiag.report.format import plural
    from gpudiag.schedulers.prometheus.api import Access, Prometheus
    from gpudiag.schedulers.prometheus.job_samples import (
        FILE,
        Asked,
        check_free,
        hosts_at_once,
        job_samples,
        write_samples,
    )

    if not 0 < timeout <= DAY_S:
        raise ConfigError(f"--timeout must be more than 0 s and at most a day, but got {timeout:g}.")
    names = ("TOKEN", "USER", "PASSWORD")
    access = Access(*(os.environ.get(f"GPUDIAG_PROMETHEUS_{name}", "") for name in names))
    server = Prometheus(url, access, timeout)
    end_s = _seconds("--end", end, timezone) if end else int(time.time())
    start_s = _seconds("--start", start, timezone) if start else end_s - DAY_S
    asked = Asked(job, start_s, end_s, step, namespace.strip())
    folder = output or Path(f"job-{folder_name(job)}")
    check_output(folder)
    check_free(folder / FILE)
    series = job_samples(server, asked)
    path = write_samples(folder, series)
    if hosts := hosts_at_once(series, job):
        say(f"Pods {job} ran on {', '.join(hosts)} at the same time: these are several jobs, as of several clusters.")
    data = read_telemetry(path)
    say(f"{path}: {plural(data.rows, 'sample')} of {plural(len(data.gpus), 'GPU')}. Next: gpudiag report {folder}")


def _seconds(option: str, text: str, timezone: str | None) -> int:
    """A time in seconds since 1970; one without a zone is of ``--timezone``, else of this machine."""
    from gpudiag.timezones import parse_zone

    try:
        moment = datetime.fromisoformat(text)
        zoned = moment if moment.tzinfo else moment.replace(tzinfo=parse_zone(timezone))
        return int(zoned.timestamp())
    except (ValueError, OverflowError) as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(f"{option} must be a time such as 2026-03-01T10:00, but got '{text}'.") from error
