"""Files that `make fuzz` once found: each is read and diagnosed, or refused in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent.parent
KEPT = sorted(path for path in (TESTS / "fuzzed").glob("*") if path.is_dir())


@pytest.mark.slow
@pytest.mark.parametrize("folder", KEPT, ids=lambda folder: folder.name)
def test_what_was_found_stays_mended(folder: Path) -> None:
    from case import fault_of

    assert fault_of(folder) == ""


def test_a_case_is_the_same_each_time_and_a_change_is_one() -> None:
    from case import made

    known = [("a.csv", b"time,gpu\n1,2\n3,4\n"), ("b.json", b'{"a": [1, 2]}')]
    assert [made(7, number, known) for number in range(30)] == [made(7, number, known) for number in range(30)]
    assert sum(data not in dict(known).values() for n in range(30) for data in made(7, n, known).values()) > 20


def test_a_fault_is_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    import case

    monkeypatch.setattr(case, "faulty", lambda files: "x" if any(b"!" in data for data in files.values()) else "")
    small = case.smallest({"a": b"one\ntwo!\nthree", "b": b"four"}, "x")
    assert small == {"a": b"!"}
