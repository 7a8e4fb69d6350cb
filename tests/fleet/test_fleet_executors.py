"""Executors of others: threads, processes, and a real Dask cluster of which a worker is killed midway."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from gpudiag.errors import ConfigError, InputError
from gpudiag.fleets.executors import executor_named
from gpudiag.fleets.fleet import fleet
from gpudiag.report.fleet.document import RunRow

N = 2


@pytest.fixture
def runs(samples: Path, tmp_path: Path) -> Path:
    for k in range(N):
        shutil.copytree(samples / "tiny-batch-laptop", tmp_path / "runs" / str(k))
        (tmp_path / "runs" / str(k) / "note.txt").write_text(str(k), encoding="utf-8")
    return tmp_path / "runs"


def names(rows: tuple[RunRow, ...]) -> list[str]:
    return [row.run for row in rows if row.status != "not diagnosed"]


@pytest.mark.slow
def test_a_pool_of_processes_will_do(runs: Path, tmp_path: Path) -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        table = fleet(runs, tmp_path / "out", executor=pool)
    assert names(table.rows) == [str(k) for k in range(N)]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
def test_a_dask_cluster_that_loses_a_worker_loses_no_run(runs: Path, tmp_path: Path) -> None:
    distributed = pytest.importorskip("dask.distributed")
    with (
        distributed.LocalCluster(2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        executor_named(f"dask:{cluster.scheduler_address}") as pool,
    ):
        killed: list[int] = []

        def kill(done: int, of: int, row: RunRow) -> None:
            if not killed:
                killed.append(cluster.workers[0].pid)
                os.kill(killed[0], signal.SIGKILL)

        table = fleet(runs, tmp_path / "out", executor=pool, progress=kill)
    assert killed and names(table.rows) == [str(k) for k in range(N)]


@pytest.mark.slow
def test_an_executor_of_executorlib_will_do(runs: Path, tmp_path: Path) -> None:
    executorlib = pytest.importorskip("executorlib")
    with executorlib.SingleNodeExecutor(max_workers=1, block_allocation=True) as pool:
        table = fleet(runs, tmp_path / "out", executor=pool)
    assert names(table.rows) == [str(k) for k in range(N)]


OVER_MPI = """
import sys
from mpi4py.futures import MPIPoolExecutor
import gpudiag as gd
if __name__ == "__main__":
    with MPIPoolExecutor() as pool:
        table = gd.fleet(sys.argv[1], sys.argv[2], executor=pool)
    print(*(row.run for row in table.rows if row.status != "not diagnosed"))
"""


@pytest.mark.slow
def test_a_pool_of_mpi_will_do(runs: Path, tmp_path: Path) -> None:
    pytest.importorskip("mpi4py")
    beside = Path(sys.executable).parent  # where pip puts MPICH's
    mpiexec = shutil.which("mpiexec", path=os.pathsep.join([str(beside), os.environ.get("PATH", "")]))
    if mpiexec is None:
        pytest.skip("no mpiexec")
    script = tmp_path / "over_mpi.py"
    script.write_text(OVER_MPI, encoding="utf-8")
    command = [mpiexec, "-n", "2", sys.executable, "-m", "mpi4py.futures", script, runs, tmp_path / "out"]
    allowed = dict.fromkeys(("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"), "1")
    allowed["PRTE_MCA_rmaps_default_mapping_policy"] = ":oversubscribe"
    done = subprocess.run(command, env=os.environ | allowed, capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout.split() == [str(k) for k in range(N)]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")  # its logs
def test_a_fleet_is_one_job_of_submitit(runs: Path, tmp_path: Path) -> None:
    """What docs/fleet.md says to do on Slurm."""
    submitit = pytest.importorskip("submitit")
    executor = submitit.AutoExecutor(folder=tmp_path / "logs", cluster="local")
    executor.update_parameters(timeout_min=5, cpus_per_task=1)
    table = executor.submit(fleet, runs, tmp_path / "out", jobs=1).result()
    assert names(table.rows) == [str(k) for k in range(N)]


@pytest.mark.parametrize("name", ["dask", "dask:", "ray:local"])
def test_another_executor_is_said(name: str) -> None:
    with pytest.raises(ConfigError, match="dask:local"), executor_named(name):
        pass


@pytest.mark.slow
def test_no_scheduler_is_an_input_error(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("dask.distributed")
    from dask import distributed

    def no_answer(*args: object, **kwargs: object) -> None:
        raise OSError("timed out")

    monkeypatch.setattr(distributed, "Client", no_answer)
    with pytest.raises(InputError, match="no Dask scheduler answers"), executor_named("dask:tcp://localhost:1"):
        pass
