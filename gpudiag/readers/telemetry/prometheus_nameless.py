"""Answers of Prometheus whose series no longer name their metric; recognized in order to say so."""

from __future__ import annotations

from gpudiag.errors import InputError
from gpudiag.readers._io.source import Source
from gpudiag.readers.base import Reader, ReadOptions, Telemetry

NAME = "Prometheus JSON without metric names"


def recognises(source: Source) -> bool:
    text = source.text
    return text.lstrip("\ufeff \r\n\t")[:1] == "{" and '"resultType"' in text and '"__name__"' not in text


def read(source: Source, options: ReadOptions) -> Telemetry:
    """Raise InputError: nothing says whether 80 is a utilization, a temperature or a power."""
    raise InputError(
        f"{source.path}: is an answer of Prometheus whose series do not say of which metric they are, as avg, sum and "
        "other functions leave that out. Ask for the metrics themselves, such as DCGM_FI_DEV_GPU_UTIL, or keep the "
        "name and the GPU: avg by (__name__, Hostname, gpu, UUID) (...)."
    )


READER = Reader(NAME, recognises, read, refuses=True)
