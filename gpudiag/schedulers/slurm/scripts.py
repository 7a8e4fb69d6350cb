"""The scripts, each put together from the functions that it includes, so that sbatch may take it elsewhere alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from gpudiag.errors import ConfigError
from gpudiag.files import write

JOB = "gpudiag.sbatch"
SCRIPTS = {
    JOB: "job.sbatch",
    "task-prolog.sh": "task-prolog.sh",
    "task-epilog.sh": "task-epilog.sh",
    "job-epilog.sh": "job-epilog.sh",
}
"""Each by the name under which it is written: the file in this package that it is made of."""
FIELDS = (
    "timestamp,index,name,uuid,utilization.gpu,utilization.memory,memory.used,memory.total,power.draw,power.limit,"
    "temperature.gpu,clocks.sm,clocks_event_reasons.active"
)
"""What nvidia-smi is asked for where gpudiag is not installed."""
_INCLUDE = re.compile(r"^# @include (\S+)\n", re.MULTILINE)


def script_text(name: str = JOB) -> str:
    """One of SCRIPTS, as bash."""
    return _INCLUDE.sub(lambda found: _part(found[1]), _part(SCRIPTS[name])).replace("@FIELDS@", FIELDS)


def write_scripts(folder: Path) -> Iterator[Path]:
    """Write all of them into a folder; each that is written.

    Raises ConfigError, before anything is written, where another file has one of their names.
    """
    texts = {folder / name: script_text(name) for name in SCRIPTS}
    for path, text in texts.items():
        if path.exists() and (path.is_dir() or path.read_bytes() != text.encode()):
            raise ConfigError(f"{path}: exists, is not this script, and would be overwritten; choose another -o.")
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in texts.items():
        write(path, text)
        path.chmod(path.stat().st_mode | 0o111)
        yield path


def _part(name: str) -> str:
    return files("gpudiag.schedulers.slurm").joinpath(name).read_text(encoding="utf-8")
