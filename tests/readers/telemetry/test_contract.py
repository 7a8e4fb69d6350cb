"""The contract of telemetry readers: every reader of the registry x every sample of ``dialects/``.

Adding a dialect: write the reader, add it to READERS, put ``dialects/<dialect>.py`` with ``SAMPLES`` beside the
others (see :mod:`telemetry_sample`). A reader without a sample fails here with the file to write.
"""

from __future__ import annotations

import gzip
import importlib.util
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from types import ModuleType

import pandas as pd
import pyarrow as pa
import pytest
from telemetry_sample import Content, Sample

from gpudiag.errors import InputError
from gpudiag.readers._io.source import Source
from gpudiag.readers.artifacts import READERS as ARTIFACT_READERS
from gpudiag.readers.base import Telemetry
from gpudiag.readers.telemetry import READERS, read_telemetry
from gpudiag.readers.trials import READERS as TRIAL_READERS
from gpudiag.schema import TABLES, dtype, in_range

Plain = Callable[[Sample], Telemetry]
Change = Callable[[bytes], bytes]
ENCODINGS: dict[str, Change] = {
    **{name: lambda text, name=name: text.decode().encode(name) for name in ("utf-8-sig", "utf-16", "utf-16-le")},
    "crlf": lambda text: text.replace(b"\n", b"\r\n"),
}
PACKINGS: dict[str, Change] = {"gzip": gzip.compress, "zstd": partial(pa.compress, codec="zstd", asbytes=True)}
GARBAGE = ("==== New Run ====", "Traceback (most recent call last):", "", "\x1b[31mwarning\x1b[0m", "C:\\> nvidia-smi")


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"telemetry_dialect_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


DIALECTS = sorted((Path(__file__).parent / "dialects").glob("*.py"))
SAMPLES: list[Sample] = [sample for path in DIALECTS for sample in _load(path).SAMPLES]
TEXTS = [sample for sample in SAMPLES if isinstance(sample.content, str)]
LINES = [sample for sample in TEXTS if sample.by_line]
FILES = [sample for sample in SAMPLES if not isinstance(sample.content, Mapping)]
FIRST = {sample.reader: sample.id for sample in reversed(FILES)}
"""By reader its first sample, which is cut at every percent, and read in every encoding and packing."""


def over(samples: list[Sample]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("sample", samples, ids=lambda sample: sample.id)


def in_turn(samples: list[Sample], name: str, ways: dict[str, Change]) -> pytest.MarkDecorator:
    """The first sample of a reader in all these ways, of its others each in the next one."""
    cases = [
        pytest.param(sample, ways[way], id=f"{way}-{sample.id}")
        for at, sample in enumerate(samples)
        for number, way in enumerate(ways)
        if FIRST[sample.reader] == sample.id or at % len(ways) == number
    ]
    return pytest.mark.parametrize(("sample", name), cases)


def put(content: Content, folder: Path, name: str = "input.dat") -> Path:
    path = folder / name
    if isinstance(content, Mapping):
        for relative, text in content.items():
            (path / relative).parent.mkdir(parents=True, exist_ok=True)
            (path / relative).write_text(text, encoding="utf-8")
    else:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def as_bytes(sample: Sample) -> bytes:
    return sample.content.encode() if isinstance(sample.content, str) else bytes(sample.content)  # type: ignore[arg-type]


def read(sample: Sample, content: Content, folder: Path) -> Telemetry:
    return read_telemetry(put(content, folder), timezone="UTC", **sample.options)


def read_or_refuse(sample: Sample, content: Content, folder: Path) -> Telemetry | None:
    try:
        return read(sample, content, folder)
    except InputError as error:
        assert str(folder) in str(error), "an error names the file"
        return None


def rows(telemetry: Telemetry, sample: Sample) -> pd.DataFrame:
    return getattr(telemetry, sample.table)


def same(left: pd.DataFrame, right: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(left, right, check_exact=True)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Plain:
    """What is read of a sample as it is, each once: the tests look at it and change nothing."""
    by_id = {sample.id: sample for sample in SAMPLES}
    once = cache(lambda name: read(by_id[name], by_id[name].content, tmp_path_factory.mktemp("plain")))
    return lambda sample: once(sample.id)


def keys(frame: pd.DataFrame) -> set[tuple[object, ...]]:
    known = [name for name in ("time", "gpu", "pid") if name in frame]
    return set(frame[known].itertuples(index=False, name=None))


def test_every_reader_has_a_sample() -> None:
    missing = {reader.name for reader in READERS if not reader.refuses} - {sample.reader for sample in SAMPLES}
    assert not missing, f"add tests/readers/telemetry/dialects/<dialect>.py with SAMPLES for {sorted(missing)}"
    assert len({sample.id for sample in SAMPLES}) == len(SAMPLES), "sample names are unique"


@over(SAMPLES)
def test_exactly_one_reader_of_all_registries_claims_it(sample: Sample, tmp_path: Path) -> None:
    source = Source.open(put(sample.content, tmp_path))
    claims = [r.name for r in (*READERS, *TRIAL_READERS, *ARTIFACT_READERS) if r.recognises(source)]
    assert claims == [sample.reader]


@over([sample for sample in SAMPLES if isinstance(sample.content, str) and sample.reader != "gpudiag-record"])
def test_the_head_of_a_recording_of_ours_within_it_is_a_line_of_it(sample: Sample, tmp_path: Path) -> None:
    lines = str(sample.content).splitlines(keepends=True)
    for at in {0, 1, 2, len(lines) // 2, min(len(lines), 50)}:
        text = "".join([*lines[:at], '# gpudiag-record 1 {"host": "node7"}\n', *lines[at:]])
        source = Source.open(put(text, tmp_path, str(at)))
        claims = [r.name for r in (*READERS, *TRIAL_READERS, *ARTIFACT_READERS) if r.recognises(source)]
        broken = not at or lines[0].lstrip()[:1] in ("[", "{")  # no first line of that tool, or no JSON any more
        assert claims == [sample.reader] or (broken and not claims)


@over(SAMPLES)
def test_tables_follow_the_schema(sample: Sample, plain: Plain) -> None:
    telemetry = plain(sample)
    assert telemetry.reader == sample.reader
    for name in ("gpu", "gpus", "processes", "host", "events"):
        table, frame = TABLES[name], getattr(telemetry, name)
        assert set(table.required) <= set(frame.columns) <= set(table.names), name
        for column in frame.columns:
            assert str(frame[column].dtype) == dtype(table[column].kind), (name, column)
            assert in_range(frame[column], table[column]).all(), (name, column)
            assert column in table.required or frame[column].notna().any(), (name, column)
        assert frame.index.equals(pd.RangeIndex(len(frame))), name


@over(SAMPLES)
def test_all_rows_are_read_sorted_and_unique(sample: Sample, plain: Plain) -> None:
    telemetry = plain(sample)
    frame = rows(telemetry, sample)
    assert len(frame) == sample.rows
    assert not any(problem.lost for problem in telemetry.problems), telemetry.problems
    for name in ("gpu", "processes", "host"):
        table = getattr(telemetry, name)
        key = list(TABLES[name].key)
        assert not table.duplicated(key).any(), name
        assert table["time"].notna().all(), name
    if sample.gpus:
        assert tuple(telemetry.gpus["gpu"]) == sample.gpus
        assert set(telemetry.gpu["gpu"]) <= set(sample.gpus)
    for _, own in telemetry.gpu.groupby("gpu", sort=False):
        assert own["time"].is_monotonic_increasing
        assert own.index[-1] - own.index[0] == len(own) - 1, "rows of one GPU stand together"


@over(SAMPLES)
def test_values_are_what_the_content_says(sample: Sample, plain: Plain) -> None:
    assert sample.first and sample.last, (
        f"{sample.id}: give first= and last=, the first and last row as the content says them, e.g. "
        "first='2025-03-01T10:00:00Z gpu=0 util_pct=35 mem_used_mib=4096'"
    )
    frame = rows(plain(sample), sample)
    for expected, row in zip(sample.ends, (frame.iloc[0], frame.iloc[-1]), strict=True):
        given = {name: value for name, value in row.items() if pd.notna(value)}
        assert set(given) == set(expected), sample.id
        assert given.pop("time") == pd.Timestamp(expected["time"]), sample.id
        for name, value in given.items():
            same_value = value == expected[name] if isinstance(value, str) else float(value) == float(expected[name])
            assert same_value or value == pytest.approx(float(expected[name]), rel=1e-9), (sample.id, name, value)


@over(SAMPLES)
def test_reading_twice_gives_the_same(sample: Sample, tmp_path: Path, plain: Plain) -> None:
    first, second = plain(sample), read(sample, sample.content, tmp_path)
    for name in ("gpu", "gpus", "processes", "host", "events"):
        same(getattr(first, name), getattr(second, name))
    assert first.problems == second.problems and first.notes == second.notes


@over([sample for sample in LINES if sample.stamped and sample.table == "gpu"])
def test_duplicates_are_merged_and_counted(sample: Sample, tmp_path: Path, plain: Plain) -> None:
    text = str(sample.content)
    once = plain(sample)
    twice = read(sample, text + ("" if text.endswith("\n") else "\n") + text, tmp_path)
    same(once.gpu, twice.gpu)
    before = sum(p.count for p in once.problems if p.kind == "duplicate sample")
    after = sum(p.count for p in twice.problems if p.kind == "duplicate sample")
    assert after == 2 * before + len(once.gpu) + len(once.processes) + len(once.host)


@in_turn(TEXTS, "encoded", ENCODINGS)
def test_encodings_and_line_ends_change_nothing(sample: Sample, encoded: Change, tmp_path: Path, plain: Plain) -> None:
    same(rows(plain(sample), sample), rows(read(sample, encoded(as_bytes(sample)), tmp_path), sample))


@in_turn(FILES, "pack", PACKINGS)
def test_compression_changes_nothing(sample: Sample, pack: Change, tmp_path: Path, plain: Plain) -> None:
    packed = pack(as_bytes(sample))
    same(rows(plain(sample), sample), rows(read(sample, packed, tmp_path), sample))
    read_or_refuse(sample, packed[: len(packed) * 2 // 3], tmp_path)


@pytest.mark.many
@pytest.mark.slow
@over(FILES)
def test_a_cut_anywhere_costs_at_most_the_torn_rows(sample: Sample, tmp_path: Path) -> None:
    whole = as_bytes(sample)
    full = keys(rows(read(sample, whole, tmp_path), sample))
    for percent in range(0, 100, 1 if FIRST[sample.reader] == sample.id else 7):
        part = whole[: len(whole) * percent // 100]
        telemetry = read_or_refuse(sample, part, tmp_path)
        if telemetry is not None and sample.stamped:
            assert len(keys(rows(telemetry, sample)) - full) <= sample.lost_by_cut, percent


@over(LINES)
def test_the_head_of_a_file_keeps_its_complete_rows(sample: Sample, tmp_path: Path) -> None:
    """Cut within the last line: only that line's rows may be missing."""
    text = str(sample.content).rstrip("\n")
    last = len(text) - len(text.rsplit("\n", 1)[-1])
    telemetry = read(sample, text[: last + max(1, (len(text) - last) // 2)], tmp_path)
    assert len(rows(telemetry, sample)) >= sample.rows - sample.lost_by_cut


@over(LINES)
def test_garbage_lines_cost_nothing_and_are_counted(sample: Sample, tmp_path: Path, plain: Plain) -> None:
    text = str(sample.content)
    lines = text.rstrip("\n").split("\n")
    middle = len(lines) // 2 + len(lines) % 2
    dirty = "\n".join([*lines[:middle], *GARBAGE, *lines[middle:], "torn li"])
    clean, telemetry = plain(sample), read(sample, dirty, tmp_path)
    assert len(rows(telemetry, sample)) >= sample.rows - sample.lost_by_cut
    if sample.lost_by_cut == 1:
        assert len(rows(telemetry, sample)) == sample.rows
    met = {problem.kind for problem in telemetry.problems} - {problem.kind for problem in clean.problems}
    assert met, "garbage is reported"
    firsts = [problem.line for problem in telemetry.problems if problem.kind in met and problem.line is not None]
    assert firsts and min(firsts) == middle + 1, "the first odd line is named"


@pytest.mark.parametrize("content", ["", "\n", "\n\n \n", "\0" * 64, "no such thing\n" * 20, "a,b,c\n1,2,3\n"])
def test_no_reader_claims_nothing(content: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_telemetry(put(content, tmp_path), timezone="UTC")
    assert str(tmp_path) in str(caught.value)
