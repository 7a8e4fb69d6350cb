"""Many runs in one go: each report in another process, and an index over all of them.

Another process, because a run that exhausts the memory must not take the others with it; one makes report after report,
because importing takes as long as a small one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from gpudiag._load.own_outputs import is_own_output
from gpudiag.errors import ConfigError, InputError
from gpudiag.interpreter import Children
from gpudiag.manifest import MANIFEST
from gpudiag.readers._io.source import Source
from gpudiag.readers.base import ReadOptions
from gpudiag.report._notebook.runner import DOCUMENT
from gpudiag.report.index import Index, IndexEntry, failed, read_row
from gpudiag.timezones import parse_zone

CHILD = "gpudiag.cli._child"
SIGNAL_S = 0.5
"""How often the main thread looks whether a signal has come: one that another thread got does not wake it."""


@dataclass(frozen=True)
class Job:
    """One report to make: the run, and the folder of its report below the batch's."""

    run: Path
    folder: str


def plan_jobs(runs: Sequence[Path]) -> list[Job]:
    """A job a run; a folder that only holds runs stands for all of them. Folders of reports are named after runs."""
    paths = [path for run in runs for path in runs_in(run)]
    names = [path.resolve().name if path.is_dir() else path.resolve().parent.name for path in paths]
    wanted = [
        own if names.count(own) == 1 else f"{path.resolve().parent.name}-{own}"
        for path, own in zip(paths, names, strict=True)
    ]
    return [Job(path, folder) for path, folder in zip(paths, distinct_names(wanted), strict=True)]


def distinct_names(names: Iterable[str]) -> list[str]:
    """Names of folders, one each, in their order: one that is taken gets a number."""
    taken: set[str] = set()
    out = []
    for name in names:
        free = (name if n == 1 else f"{name}-{n}" for n in count(1))
        out.append(next(x for x in free if x.casefold() not in taken))  # some disks do not tell Run from run
        taken.add(out[-1].casefold())
    return out


def runs_in(folder: Path) -> list[Path]:
    """The folder itself where it is a run; where it only holds runs, those: by a run.toml in one at least, else by what
    was read in its folders, as :func:`gpudiag.load_run` tells it.
    """
    if not folder.is_dir() or is_run(folder):
        return [folder]
    if any(folder.rglob(MANIFEST)):
        return [run for run, recognised in _below(folder) if recognised]
    return _told_by_data(folder) or [folder]


def _told_by_data(folder: Path) -> list[Path]:
    """The runs in a folder of folders, each with data of its own; none where it is one run, or cannot be read."""
    if sum(recognised for _, recognised in _below(folder)) < 2:
        return []
    from gpudiag._load.folder import search  # all readers, as below
    from gpudiag._load.folder_of_runs import runs_apart
    from gpudiag._load.sessions import without_undated

    try:
        found, _ = search(folder, ReadOptions(parse_zone(None)))
    except InputError:  # reading it as one run says why
        return []
    return [folder / run for run in runs_apart(without_undated(found), folder)]


def left_out(folder: Path) -> list[Path]:
    """Folders beside the runs in a folder of runs that hold files of which no reader recognizes any."""
    if not folder.is_dir() or is_run(folder):
        return []
    return [path for path, recognised in _below(folder) if not recognised]


def _below(folder: Path) -> Iterator[tuple[Path, bool]]:
    """Folders with files, down to the first that is a run, and whether they are one."""
    for path in sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")):
        if is_run(path):
            yield path, True
            continue
        if any(inner.is_file() for inner in path.iterdir()):
            yield path, False
        yield from _below(path)


def is_ours(path: Path) -> bool:
    """Whether gpudiag itself wrote a file or folder that is no input."""
    try:
        return is_own_output(Source.open(path))
    except (InputError, OSError):
        return False


def is_run(folder: Path) -> bool:
    """Whether it has a run.toml, or data directly in it, or is such as a reader takes whole. Raises OSError."""
    return (folder / MANIFEST).is_file() or any(True for _ in data_in(folder))


def data_in(folder: Path) -> Iterator[Path]:
    """The folder itself where a reader takes it whole, and the files directly in it that one reads. Raises OSError."""
    files = [path for path in sorted(folder.iterdir()) if path.is_file() and not path.name.startswith(".")]
    return (path for path in [folder, *files] if _recognised(path))


def _recognised(path: Path) -> bool:
    from gpudiag.readers.identify import identify  # all readers, which a folder with a run.toml does not need here

    try:
        source = Source.open(path)
        return identify(source) is not None and not is_own_output(source)
    except InputError:  # a pipe, or damaged
        return False


def report_all(
    jobs: Sequence[Job],
    output: Path,
    options: Sequence[str] = (),
    *,
    workers: int = 1,
    progress: Callable[[IndexEntry], None] = lambda row: None,
) -> Index:
    """Make every report below ``output``, ``workers`` at a time, and the index over them.

    Args:
        jobs: what to make.
        output: made where it does not exist; gets index.html and index.md.
        options: options of ``gpudiag report`` for every run.
        workers: processes at once, at least 1.
        progress: called with each row as its report is done.

    Raises:
        ConfigError: fewer than one worker.
    """
    if workers < 1:
        raise ConfigError(f"--jobs must be 1 or more, but got {workers}.")
    rows = []
    for row in _rows(jobs, output, options, workers):
        progress(row)
        rows.append(row)
    index = Index.of(rows)
    index.write(output)
    return index


def _rows(jobs: Sequence[Job], output: Path, options: Sequence[str], workers: int) -> Iterator[IndexEntry]:
    with ThreadPoolExecutor(workers) as pool, Children(CHILD) as children:
        waiting = {pool.submit(_report, children, job, output, options) for job in jobs}
        try:
            while waiting:
                done, waiting = wait(waiting, SIGNAL_S, FIRST_COMPLETED)
                yield from (one.result() for one in done)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _report(children: Children, job: Job, output: Path, options: Sequence[str]) -> IndexEntry:
    folder = output / job.folder
    code, said = children.run(["report", str(job.run), "-o", str(folder), *options])
    if code == 0 and (folder / DOCUMENT).is_file():  # with any other code it is of an earlier batch
        return read_row(folder, job.folder)
    lines = said.strip().splitlines()
    reason = lines[-1].removeprefix("gpudiag: ") if lines else f"its process ended with {code}"
    return failed(str(job.run), job.folder, reason)
