"""Blocks of whole lines in any encoding, compression and line end; torn archives keep their good part."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import zipfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpudiag.errors import InputError, InputNotFound
from gpudiag.readers._io import source as source_file
from gpudiag.readers._io.source import HEAD_BYTES, Source

ZSTD = partial(pa.Codec("zstd", compression_level=3).compress, asbytes=True)
TEXT = "".join(f"{k},{k * 0.5}\n" for k in range(40_000))


def in_zip(data: bytes) -> bytes:
    """As a pipe into ``zip`` leaves it too: lengths and checksum only at the end."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("log.txt", "w") as file:
        file.write(data)
    return out.getvalue()


Change = Callable[[bytes], bytes]


def in_two(pack: Change) -> Change:
    return lambda data: pack(data[:7000]) + pack(data[7000:])


ENCODINGS: dict[str, Change] = {
    "utf-8": lambda data: data,
    "bom": lambda data: data.decode().encode("utf-8-sig"),
    "utf-16": lambda data: data.decode().encode("utf-16"),
    "utf-16-le": lambda data: data.decode().encode("utf-16-le"),
    "crlf": lambda data: data.replace(b"\n", b"\r\n"),
    "cr": lambda data: data.replace(b"\n", b"\r"),
    "gzip": gzip.compress,
    "two-gzip-members": in_two(gzip.compress),
    "gzip-and-junk": lambda data: gzip.compress(data) + b"\0\0junk",
    "zstd": ZSTD,
    "two-zstd-frames": in_two(ZSTD),
    "xz": lzma.compress,
    "two-xz-streams": in_two(lzma.compress),
    "bzip2": bz2.compress,
    "two-bzip2-streams": in_two(bz2.compress),
    "zip": in_zip,
}


@cache
def encoded(name: str) -> bytes:
    return ENCODINGS[name](TEXT.encode())


def put(folder: Path, data: bytes) -> Source:
    (folder / "log").write_bytes(data)
    return Source.open(folder / "log")


def test_a_small_file_is_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []
    monkeypatch.setattr(source_file, "open_bytes", lambda path: opened.append(path) or path.open("rb"))
    source = put(tmp_path, b"a,b\n1,2\n")
    assert b"".join(block.data for block in source.blocks()) == source.path.read_bytes()
    assert source.sha256() == hashlib.sha256(source.path.read_bytes()).hexdigest() and len(opened) == 1


@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize("size", [1000, 99_991, 8 << 20])
def test_blocks_are_the_text_whatever_holds_it(name: str, size: int, tmp_path: Path) -> None:
    blocks = list(put(tmp_path, encoded(name)).blocks(size))
    assert b"".join(block.data for block in blocks) == TEXT.encode()
    line = 1
    for block in blocks:
        assert block.first_line == line
        line += block.data.count(b"\n")
        assert block is blocks[-1] or block.data.endswith(b"\n")


@given(
    st.lists(st.text(st.characters(exclude_characters="\r\n\0\ufeff", exclude_categories=["Cs"])), max_size=20),
    st.integers(1, 50),
)
@settings(deadline=None)
def test_lines_survive_any_block_size(lines: list[str], size: int) -> None:
    data = "\n".join(lines).encode()
    source = Source(Path("none"), data)
    if source.encoding == "utf-8":
        assert b"".join(block.data for block in source.blocks(size)) == data


def test_nul_bytes_are_dropped_and_counted(tmp_path: Path) -> None:
    blocks = list(put(tmp_path, TEXT.replace("\n7", "\n\0\0\x007").encode()).blocks(100_000))
    assert b"".join(block.data for block in blocks) == TEXT.encode()
    assert sum(block.nul_bytes for block in blocks) == 3 * TEXT.count("\n7")


def test_bytes_of_no_encoding_become_a_mark(tmp_path: Path) -> None:
    source = put(tmp_path, TEXT.encode() + b"a\xb0b\n")
    assert source.encoding == "utf-8", "told from the head"
    assert list(source.blocks())[-1].data.endswith("a\ufffdb\n".encode())
    assert put(tmp_path, b"Temp (\xb0C)\n1\n").text == "Temp (°C)\n1\n"


@pytest.mark.parametrize("pack", [gzip.compress, ZSTD, lzma.compress], ids=["gzip", "zstd", "xz"])
def test_a_torn_archive_keeps_its_good_part(pack: object, tmp_path: Path) -> None:
    packed = pack(TEXT.encode())  # type: ignore[operator]
    lengths = []
    for percent in range(50, 100, 10):
        part = put(tmp_path, packed[: len(packed) * percent // 100]).read_bytes()
        assert TEXT.encode().startswith(part)
        lengths.append(len(part))
    assert lengths == sorted(lengths) and lengths[-1] > len(TEXT) // 2
    with pytest.raises(InputError, match="empty or damaged"):
        put(tmp_path, packed[:8])


@pytest.mark.parametrize("name", ["gzip", "xz", "bzip2", "zip"])
def test_whole_data_have_no_damage_and_a_changed_byte_is_told(name: str, tmp_path: Path) -> None:
    packed = bytearray(encoded(name))
    whole = put(tmp_path, bytes(packed))
    assert whole.read_bytes() == TEXT.encode() and whole.compression == name and whole.damage == []
    packed[len(packed) // 2] ^= 1
    changed = put(tmp_path, bytes(packed))
    changed.read_bytes()
    assert changed.damage[0].startswith(f"the {name} data in it")


def test_a_zip_archive_has_its_checksum_tested(tmp_path: Path) -> None:
    packed = bytearray(in_zip(b"a,b\n1,2\n"))
    at = packed.rindex(b"PK\x01\x02") + 16
    packed[at] ^= 1
    source = put(tmp_path, bytes(packed))
    assert source.head == b"a,b\n1,2\n" and source.damage == ["the zip data in it are damaged"]


def test_sniffing_looks_at_the_head_only(tmp_path: Path) -> None:
    source = put(tmp_path, TEXT.encode())
    assert len(source.head) == HEAD_BYTES < len(TEXT)
    assert source.lines[0] == "0,0.0" and TEXT.startswith("\n".join(source.lines))
    assert not source.is_binary and put(tmp_path, bytes(range(256)) * 40).is_binary


def test_a_hole_of_nul_bytes_makes_no_text_binary(tmp_path: Path) -> None:
    row = b"0, 17 %, 1 MiB\n"
    assert not put(tmp_path, row + b"\0" * 4000 + row * 9).is_binary
    assert not put(tmp_path, b"\0" * 4000 + row).is_binary


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputNotFound, match="no such file"):
        Source.open(tmp_path / "gone.csv")


def test_backslashes_of_a_text_that_is_no_json_stay(tmp_path: Path) -> None:
    line = "D:\\runs\\udeface\\log"
    (tmp_path / "log").write_text(line + "\n", encoding="utf-8")
    source = Source.open(tmp_path / "log")
    assert source.lines == [line] and source.read_text() == line + "\n"
