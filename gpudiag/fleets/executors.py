"""Where a fleet is diagnosed, by name: on this machine, or on a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any

from gpudiag.errors import ConfigError, InputError

DASK = "dask:"


@contextmanager
def executor_named(name: str) -> Iterator[Executor | None]:
    """The executor of ``dask:local`` or ``dask:tcp://host:8786``; None of '' (this machine's processors).

    Raises ConfigError for another name, or where Dask is not installed; InputError where no scheduler answers.
    """
    if not name:
        yield None
        return
    if not name.startswith(DASK) or name == DASK:
        raise ConfigError(f"--executor must be dask:local or dask:ADDRESS of a scheduler, but got {name!r}.")
    with _client(name.removeprefix(DASK)) as client:
        yield client.get_executor(pure=False)


def _client(address: str) -> Any:
    try:
        from dask.distributed import Client, LocalCluster
    except ImportError as error:
        raise ConfigError("--executor dask needs Dask; install it with: pip install 'gpudiag[dask]'") from error
    if address == "local":
        return Client(LocalCluster(threads_per_worker=1, dashboard_address=None))
    try:
        return Client(address, timeout=10)
    except (OSError, ValueError) as error:
        raise InputError(f"{address}: no Dask scheduler answers there ({error}).") from error
