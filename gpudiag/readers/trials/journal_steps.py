"""Parameters and intermediate values of a journal, nearly all of its lines, column by column.

Optuna writes them in one spelling, which is cut at its commas without parsing JSON. Lines in any other
spelling, and all other operations, are left to be read one by one.
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import polars as pl

BULK_BYTES = 256 * 1024
"""Below it, importing polars takes longer than reading line by line."""
_REPORT = ('{"op_code":7', '"worker_id":', '"trial_id":', '"step":', '"intermediate_value":')
_PARAM = ('{"op_code":5', '"worker_id":', '"trial_id":', '"param_name":', '"param_value_internal":', '"distribution":')
Columns = dict[str, np.ndarray]


class Codes(dict[Hashable, int]):
    """Each distinct value with the number of its first appearance."""

    def __missing__(self, value: Hashable) -> int:
        self[value] = len(self)
        return self[value]


class Steps:
    """Reports (line, trial_id, step, value) and parameters (line, trial_id, name, value, distribution, added).

    ``name`` and ``distribution`` are codes of ``names`` and ``distributions``. ``added`` is 1 where the
    parameter came with a whole trial. Rows stand as they were
    written: nobody has asked yet whether their trial was open.
    """

    def __init__(self) -> None:
        self.names = Codes()
        self.distributions = Codes()
        self._reports: list[Columns] = []
        self._params: list[Columns] = []
        self._report_rows: list[tuple[int, int, int, float]] = []
        self._param_rows: list[tuple[int, int, int, float, int, int]] = []

    def report(self, line: int, trial_id: int, step: Any, value: Any) -> None:
        """Note one intermediate value. Raises TypeError or ValueError for a step that is no int64."""
        if not -(2**63) <= step < 2**63:
            raise ValueError
        self._report_rows.append((line, trial_id, int(step), _number(value)))

    def param(self, line: int, trial_id: int, name: Any, value: Any, distribution: Any, *, added: bool = False) -> None:
        """Note one parameter. Raises TypeError for a distribution that is no text."""
        codes = self.names[str(name)], self.distributions[distribution]
        self._param_rows.append((line, trial_id, codes[0], _number(value), codes[1], int(added)))

    def add(self, piece: Piece) -> None:
        """Take in what a piece of the journal holds of steps."""
        if piece.reports is not None:
            self._reports.append(_arrays(piece.reports, "line", "trial_id", "step", "value"))
        if piece.params is not None:
            rows = _arrays(piece.params, "line", "trial_id", "value")
            rows["name"] = _coded(piece.params["name"], self.names)
            rows["distribution"] = _coded(piece.params["distribution"], self.distributions)
            rows["added"] = np.zeros(len(rows["line"]), dtype="int64")
            self._params.append(rows)

    @property
    def reports(self) -> Columns:
        """All intermediate values in the order of their lines."""
        rows = _columns(self._report_rows, line="int64", trial_id="int64", step="int64", value="float64")
        return _in_order([*self._reports, rows])

    @property
    def params(self) -> Columns:
        """All parameters in the order of their lines."""
        whole = "int64"
        rows = _columns(
            self._param_rows, line=whole, trial_id=whole, name=whole, value="float64", distribution=whole, added=whole
        )
        return _in_order([*self._params, rows])


@dataclass(frozen=True)
class Piece:
    """Some lines: the steps among them, and number and text of those that must be read one by one."""

    rest: list[tuple[int, bytes]]
    reports: pl.DataFrame | None = None
    params: pl.DataFrame | None = None


def take_apart(data: bytes, first_line: int) -> Piece:
    """Whole lines as a piece. Depends on nothing else, so that it may run beside the reading of other lines."""
    if len(data) < BULK_BYTES:
        return _one_by_one(data, first_line)
    import polars as pl

    try:
        lines = pl.read_csv(
            data, has_header=False, separator="\x01", quote_char=None, schema={"text": pl.String}
        ).with_row_index("line", offset=first_line)
    except pl.exceptions.PolarsError:  # damaged text
        return _one_by_one(data, first_line)
    lines = lines.with_columns(
        report=pl.col("text").str.starts_with(_REPORT[0] + ","), param=pl.col("text").str.starts_with(_PARAM[0] + ",")
    )
    reports, odd_reports = _reports(lines.filter("report").select("line", "text"))
    params, odd_params = _params(lines.filter("param").select("line", "text"))
    others = lines.filter(~(pl.col("report") | pl.col("param")).fill_null(False)).select("line", "text")
    odd = pl.concat([others, odd_reports, odd_params]).sort("line")
    return Piece([(line, (text or "").encode()) for line, text in odd.iter_rows()], reports, params)


def _one_by_one(data: bytes, first_line: int) -> Piece:
    return Piece(list(enumerate(data.split(b"\n")[:-1], start=first_line)))


def _reports(lines: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The intermediate values that are spelt as expected, and the other lines."""
    import polars as pl

    value = pl.col("field_4").str.strip_suffix("}")
    return _told(
        lines,
        _parts(lines, _REPORT).select(
            "line",
            trial_id=_after("field_2", _REPORT[2]).cast(pl.Int64, strict=False),
            step=_after("field_3", _REPORT[3]).cast(pl.Int64, strict=False),
            value=value.str.strip_prefix(_REPORT[4]).cast(pl.Float64, strict=False),
            good=_spelt(_REPORT) & pl.col("field_4").str.ends_with("}"),
        ),
    )


def _params(lines: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The parameters that are spelt as expected, and the other lines; texts still carry their quotes."""
    import polars as pl

    return _told(
        lines,
        _parts(lines, _PARAM).select(
            "line",
            trial_id=_after("field_2", _PARAM[2]).cast(pl.Int64, strict=False),
            name=_after("field_3", _PARAM[3]),
            value=_after("field_4", _PARAM[4]).cast(pl.Float64, strict=False),
            distribution=_after("field_5", _PARAM[5]).str.strip_suffix("}"),
            good=_spelt(_PARAM) & pl.col("field_5").str.ends_with('"}'),
        ),
    )


def _parts(lines: pl.DataFrame, prefixes: tuple[str, ...]) -> pl.DataFrame:
    import polars as pl

    return lines.select("line", pl.col("text").str.splitn(",", len(prefixes)).alias("parts")).unnest("parts")


def _told(lines: pl.DataFrame, found: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """What was found and is complete, and the lines where it is not."""
    import polars as pl

    good = found["good"] & found.select(~pl.any_horizontal(pl.all().is_null())).to_series()
    return found.filter(good), lines.filter(~good)


def _number(value: Any) -> float:
    """NaN where a damaged entry holds no number, as for NULL in a database."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return np.nan


def _after(field: str, prefix: str) -> pl.Expr:
    import polars as pl

    return pl.col(field).str.strip_prefix(prefix)


def _spelt(prefixes: tuple[str, ...]) -> pl.Expr:
    """True where every part begins as it should."""
    import polars as pl

    return pl.all_horizontal(
        pl.col(f"field_{at}").str.starts_with(prefix) for at, prefix in enumerate(prefixes) if at > 0
    )


def _arrays(frame: pl.DataFrame, *names: str) -> Columns:
    return {
        name: frame[name].to_numpy().astype("float64" if name == "value" else "int64", copy=False) for name in names
    }


def _coded(quoted: pl.Series, codes: Codes) -> np.ndarray:
    """The code of each JSON string. Only distinct ones are decoded."""
    encoded = quoted.to_arrow().dictionary_encode()
    known = [codes[_decoded(text)] for text in encoded.dictionary.to_pylist()]
    return np.array(known, dtype="int64")[encoded.indices.to_numpy(zero_copy_only=False)]


def _decoded(quoted: str) -> str:
    """The text of a JSON string; damaged, it stays as it is and will be found unknown."""
    try:
        return str(json.loads(quoted))
    except ValueError:
        return quoted


def _columns(rows: list[tuple], **kinds: str) -> Columns:
    cells = list(zip(*rows, strict=True)) or [()] * len(kinds)
    return {name: np.array(column, dtype=kind) for (name, kind), column in zip(kinds.items(), cells, strict=True)}


def _in_order(parts: list[Columns]) -> Columns:
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[-1]}
    line = joined["line"]
    if (np.diff(line) >= 0).all():
        return joined
    order = np.argsort(line, kind="stable")
    return {name: cells[order] for name, cells in joined.items()}
