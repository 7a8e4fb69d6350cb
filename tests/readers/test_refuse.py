"""What no reader knows is refused with what it looks like."""

from __future__ import annotations

import io
import re
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import gpudiag as gd
from gpudiag.errors import InputNotFound, UnknownInput
from gpudiag.readers._io.source import Source
from gpudiag.readers.base import refuse
from gpudiag.readers.identify import identify

CASES = {
    "timestamp,n1_watts,total_watts\n2026-05-05T19:14:51,1,2\n": "none of its columns is known (timestamp, n1_watts, ",
    "a;b;c\n1;2;3\n": "none of its columns is known (a, b, c)",
    "": "is empty (0 bytes)",
    "Hello, this is prose. It goes on: and on.\n": "its first line is 'Hello",
    "1,2,3\n": "its first line is '1,2,3'",
    "\x00\x01\x02\x03" * 50: "binary file",
}


@pytest.mark.parametrize("text", CASES)
def test_the_sentence_says_what_came(text: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_text(text, encoding="utf-8")
    message = str(refuse(Source.open(tmp_path / "x"), "something else", identify))
    assert CASES[text] in message and "expected something else" in message and str(tmp_path) in message


@pytest.mark.parametrize(("above", "said"), [("", "an empty line"), ("sep=;", "'sep=;'")])
def test_a_table_below_another_line_is_said_to_be_one(tmp_path: Path, above: str, said: str) -> None:
    (tmp_path / "x").write_text(f"{above}\nnumber;value;state\n0;0.5;COMPLETE\n")
    with pytest.raises(UnknownInput, match=f"begins with {said}; remove it"):
        gd.read_trials(tmp_path / "x")


@pytest.mark.parametrize("read", [gd.load_run, gd.read_telemetry, gd.read_trials])
def test_above_a_table_that_nobody_knows_no_line_is_in_the_way(read: Callable[[Path], object], tmp_path: Path) -> None:
    (tmp_path / "x").write_text("\nfirst;second;third\n1;2;3\n")
    with pytest.raises(UnknownInput, match=r"none of its columns is known \(first, second, third\)"):
        read(tmp_path / "x")


LOG = "timestamp, index, utilization.gpu [%]\n" + "".join(
    f"2026/03/01 10:00:{second:02d}.000, 0, {second} %\n" for second in range(60)
)


def in_zip(data: bytes, method: int, *names: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name in names:
            archive.writestr(name, data)
    return out.getvalue()


def in_tar(data: bytes, mode: str) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:  # type: ignore[call-overload]
        about = tarfile.TarInfo("gpu.csv")
        about.size = len(data)
        archive.addfile(about, io.BytesIO(data))
    return out.getvalue()


@pytest.mark.parametrize(
    ("pack", "said"),
    [(lambda data: in_zip(data, zipfile.ZIP_DEFLATED, "gpu.csv", "more.csv"), "a ZIP archive"),
     (lambda data: in_zip(data, zipfile.ZIP_STORED, "gpu.csv"), "a ZIP archive"),
     (lambda data: in_zip(data, zipfile.ZIP_DEFLATED, "gpu.csv")[:-20], "a ZIP archive"),
     (lambda data: in_tar(data, "w"), "a tar archive"), (lambda data: in_tar(data, "w:gz"), "a tar archive")],
    ids=["zip of two", "stored zip", "cut zip", "tar", "tar.gz"],
)  # fmt: skip
def test_an_archive_is_to_be_unpacked_first(pack: Callable[[bytes], bytes], said: str, tmp_path: Path) -> None:
    """Also one that holds its file as it is, so that its lines could be read."""
    (tmp_path / "packed").write_bytes(pack(LOG.encode()))
    for read in (gd.load_run, gd.read_telemetry, gd.read_trials):
        with pytest.raises(UnknownInput, match=f"packed: is {said}; unpack it first and give what is in it"):
            read(tmp_path / "packed")
    (tmp_path / "gpu.csv").write_text(LOG, encoding="utf-8")
    assert gd.load_run(tmp_path).info.not_recognized == ("packed",)


def test_a_table_that_another_tool_holds_is_to_be_saved_as_one_that_is_read(tmp_path: Path) -> None:
    frame = pd.DataFrame({"timestamp": pd.date_range("2026-03-01", periods=600, freq="1s"), "gpu_util": 7})
    frame.to_pickle(tmp_path / "pickle")
    frame.to_feather(tmp_path / "an Arrow file")
    (tmp_path / "an Excel workbook").write_bytes(
        in_zip(b"<x/>", zipfile.ZIP_DEFLATED, "[Content_Types].xml", "xl/a.xml")
    )
    for path in tmp_path.iterdir():
        with pytest.raises(UnknownInput, match=f"{path.name}.*; save its table as CSV or Parquet"):
            gd.load_run(path)


@pytest.mark.parametrize("given", [{"source": "-"}, {"telemetry": "-"}, {"trials": "-"}])
def test_standard_input_is_not_read(given: dict[str, str]) -> None:
    with pytest.raises(InputNotFound, match="standard input is not read"):
        gd.load_run(**given)


def test_what_no_reader_knows_is_refused_in_a_line_that_says_where_the_formats_are(tmp_path: Path) -> None:
    (tmp_path / "gpu.csv").write_text("")
    with pytest.raises(UnknownInput) as refused:
        gd.load_run(tmp_path / "gpu.csv")
    said = str(refused.value).removeprefix(str(tmp_path))
    assert "is empty (0 bytes)" in said and len(said) < 230
    heading = re.findall(r"'(.+?)' in README\.md", said)
    assert heading and f"## {heading[0]}\n" in (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
