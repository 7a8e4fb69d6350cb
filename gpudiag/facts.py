"""Facts: the named numbers of profiles, declared once and named by handles that mypy and import check.

    class GpuUtilization(Row):
        \"\"\"One GPU.\"\"\"

        mean_pct: Column[float] = column("time-weighted mean", label="mean utilization")

    class UtilizationProfile(Profile, topic="utilization"):
        \"\"\"How busy the GPUs were.\"\"\"

        per_gpu: Rows = table_of(GpuUtilization)
        mean_pct: Fact[float] = fact("time-weighted mean over all GPUs", label="mean utilization")

``UtilizationProfile.mean_pct`` is the handle (key ``utilization.mean_pct``, unit, meaning, label), the same name on a
profile is its number. ``GpuUtilization.mean_pct.at("0")`` is the handle of one cell, ``utilization.gpu.0.mean_pct``.
A misspelt handle is an AttributeError where it is imported and an error of mypy.

From the declaration come the constructor (each field must be given), the tables in the class's docstring, the words
of evidence and the JSON Schema of ``measures``.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NewType, TypeVar, cast, dataclass_transform, overload

from gpudiag.faults import is_strict
from gpudiag.statement import Statement
from gpudiag.units import unit_of

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")
Key = NewType("Key", str)
"""``<topic>.<name>``: what a fact is called in plans and in the JSON's ``measures``."""

INDEX = {
    "per_gpu": "gpu",
    "by_state": "state",
    "workers": "step",
    "by_period": "period",
    "by_level": "level",
    "by_error": "error",
    "by_cause": "cause",
    "by_rank": "rank",
    "largest": "wait",
    "counters": "gpu",
    "vanished": "gpu",
}
"""Tables with one row a name, and what their index is called: their cells are facts too."""
KINDS = {
    "float": "float",
    "int": "int",
    "bool": "bool",
    "str": "text",
    "Statement": "text",
    "pd.Timestamp": "time",
    "object": "any",
}
"""Kind by annotated type. ``any`` is a column whose rows differ in kind."""
LABELS: dict[str, str] = {}
"""What a name is called in evidence, by name; filled by the declarations, and one name has one label everywhere."""


class Named(Generic[T]):
    """A name with its kind, unit and meaning. ``label``: what people read, without the unit."""

    name: str = ""
    kind: str = ""

    def __init__(self, meaning: str, label: str = "") -> None:
        self.meaning = meaning
        self.label = label

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name.removesuffix("_")  # class_ is the column "class"
        self.kind = KINDS[_parameter(owner, name)]

    @property
    def unit(self) -> str:
        """'' for text and yes or no, 'UTC' for a time; else what the name carries, '1' if it carries none."""
        return {"float": unit_of(self.name), "int": unit_of(self.name), "time": "UTC"}.get(self.kind, "")

    def line(self) -> str:
        """Name, unit and meaning for a docstring."""
        return f"    {self.name}{f' ({self.unit})' if self.unit not in ('', '1') else ''}: {self.meaning}"


class Fact(Named[T]):
    """A scalar of a profile, or a cell of one of its tables. On the class it is the handle, on a profile the value."""

    topic: str = ""

    @property
    def key(self) -> Key:
        """Its name in plans and in the JSON's ``measures``."""
        return Key(f"{self.topic}.{self.name}")

    def of(self, profile: object) -> T | None:
        """Its value in a profile; None where the profile has no such row."""
        return cast(T, getattr(profile, self.name))

    @overload
    def __get__(self, instance: None, owner: type) -> Fact[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object, owner: type) -> Fact[T] | T:
        if instance is None:
            return self
        raise AttributeError(f"{owner.__name__} was made without {self.name}")  # a value given hides the handle

    if TYPE_CHECKING:  # by which mypy knows what the constructor takes

        def __set__(self, instance: object, value: T) -> None: ...


Numeric = Fact[float] | Fact[int]


class Column(Named[T]):
    """A column of a table of a profile."""

    def __init__(self, meaning: str, label: str = "", *, optional: bool = False) -> None:
        super().__init__(meaning, label)
        self.optional = optional

    def __set_name__(self, owner: type, name: str) -> None:
        super().__set_name__(owner, name)
        self.row = cast("type[Row]", owner)

    def at(self, label: str) -> Fact[T]:
        """The fact in the row of that name, of a table that has one row a GPU or a state."""
        if not self.row.index:
            raise ValueError(f"{self.row.__name__} has no index, so its cells have no names")
        return Cell(self, label)


class Cell(Fact[T]):
    """One cell of a table with an index."""

    def __init__(self, column: Column[T], row: str) -> None:
        super().__init__(column.meaning, column.label)
        self.kind, self.topic = column.kind, column.row.topic
        self.name = f"{column.row.index}.{row}.{column.name}"
        self.column, self.row = column, row

    def of(self, profile: object) -> T | None:
        frame = getattr(profile, self.column.row.field)
        return cast(T, frame.at[self.row, self.column.name]) if self.row in frame.index else None


class Row:
    """The columns of one table of a profile; the docstring says what a row is.

    ``families``: prefixes of further columns, whose names come from the data (``params.``).
    """

    topic: ClassVar[str] = ""
    field: ClassVar[str] = ""
    index: ClassVar[str] = ""
    families: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, families: tuple[str, ...] = (), **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.families = families
        _tell_labels(cls, cls.declared().values())
        lines = [column.line() for column in cls.declared().values()]
        cls.__doc__ = "\n".join([f"{inspect.cleandoc(cls.__doc__ or '')}\n", *lines])

    @classmethod
    def declared(cls) -> dict[str, Column[Any]]:
        """The columns by name, in their order, those of a base first."""
        named = (value for base in reversed(cls.__mro__) for value in vars(base).values() if isinstance(value, Column))
        return {column.name: column for column in named}

    @classmethod
    def differs(cls, frame: pd.DataFrame) -> str:
        """In what a table is not as declared; empty where it is."""
        columns, there = cls.declared(), set(frame.columns)
        missing = [name for name, column in columns.items() if name not in there and not column.optional]
        extra = [name for name in frame if name not in columns and not str(name).startswith(cls.families or "\0")]
        wrong = [name for name, column in columns.items() if name in there and not _is_of(frame[name], column.kind)]
        parts = (("lacks", missing), ("has undeclared", extra), ("holds another kind in", wrong))
        return "; ".join(f"{what} {', '.join(map(str, names))}" for what, names in parts if names)


class Rows:
    """A table of a profile. On the class it is the declaration, on a profile the DataFrame."""

    name: str = ""

    def __init__(self, row: type[Row]) -> None:
        self.row = row

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Rows: ...
    @overload
    def __get__(self, instance: object, owner: type) -> pd.DataFrame: ...
    def __get__(self, instance: object, owner: type) -> Rows | pd.DataFrame:
        if instance is None:
            return self
        raise AttributeError(f"{owner.__name__} was made without {self.name}")

    if TYPE_CHECKING:

        def __set__(self, instance: object, value: pd.DataFrame) -> None: ...


def fact(meaning: str, *, label: str = "") -> Any:
    """A scalar of a profile; its unit is in its name. ``label`` where evidence uses the name."""
    return Fact(meaning, label)


def column(meaning: str, *, label: str = "", optional: bool = False) -> Any:
    """A column of a table. ``optional``: it is absent where the run lacks what it is made of."""
    return Column(meaning, label, optional=optional)


def table_of(row: type[Row]) -> Any:
    """A table of a profile with the columns of ``row``."""
    return Rows(row)


@dataclass_transform(eq_default=False, frozen_default=True, field_specifiers=(fact, table_of))
class Declared:
    """A frozen dataclass of facts and tables, where the class names its topic. Without a topic nothing is done."""

    topic: ClassVar[str] = ""

    def __init_subclass__(cls, topic: str = "", **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not topic:
            return
        cls.topic = topic
        handles = {name: value for name, value in vars(cls).items() if isinstance(value, Fact | Rows)}
        _tell_labels(cls, (handle for handle in handles.values() if isinstance(handle, Fact)))
        for name, handle in handles.items():
            # Without the handle as a default, each field must be given; and help() shows plain types.
            delattr(cls, name)
            cls.__annotations__[name] = "pd.DataFrame" if isinstance(handle, Rows) else _parameter(cls, name)
        dataclasses.dataclass(frozen=True, eq=False, repr=False)(cls)
        for name, handle in handles.items():
            setattr(cls, name, handle)
            _bind(handle, topic)
        cls.__doc__ = f"{inspect.cleandoc(cls.__doc__ or '')}\n\n{_tables(handles)}"

    def __post_init__(self) -> None:
        """Under :func:`gpudiag.faults.strict` a table that differs from its declaration is an error."""
        if is_strict():
            for name, row in self.tables().items():
                if differs := row.differs(getattr(self, name)):
                    raise TypeError(f"{type(self).__name__}.{name} {differs}")

    @classmethod
    def facts(cls) -> dict[str, Fact[Any]]:
        """The declared scalars by name, in their order."""
        return {name: value for name, value in vars(cls).items() if isinstance(value, Fact)}

    @classmethod
    def tables(cls) -> dict[str, type[Row]]:
        """The declared tables by name, in their order."""
        return {name: value.row for name, value in vars(cls).items() if isinstance(value, Rows)}

    @classmethod
    def fact_named(cls, name: str) -> Fact[Any] | None:
        """The scalar or, of ``<index>.<row>.<column>``, the cell of that name; None if there is none."""
        if name in (scalars := cls.facts()):
            return scalars[name]
        index, _, rest = name.partition(".")
        row, _, column = rest.rpartition(".")
        indexed = (table.declared().get(column) for table in cls.tables().values() if table.index == index)
        return next((found.at(row) for found in indexed if found and row), None) if index else None


def _bind(handle: Fact[Any] | Rows, topic: str) -> None:
    """Tell a handle where it belongs; cells have names only in tables of one profile."""
    if isinstance(handle, Fact):
        handle.topic = topic
    elif handle.name in INDEX:
        handle.row.topic, handle.row.field, handle.row.index = topic, handle.name, INDEX[handle.name]


def _tell_labels(owner: type, named: Iterable[Named[Any]]) -> None:
    """Put the labels of a class among all; raises ValueError where a name has another one already."""
    for one in named:
        if one.label and LABELS.setdefault(one.name, one.label) != one.label:
            raise ValueError(f"{owner.__name__}.{one.name}: '{one.label}' is called '{LABELS[one.name]}' elsewhere")


def _tables(handles: dict[str, Fact[Any] | Rows]) -> str:
    """What the docstring says of the fields: tables first, each with its columns."""
    lines: list[str] = []
    for handle in handles.values():
        if isinstance(handle, Rows):
            index = f" (index {handle.row.index})" if handle.row.index else ""
            lines += [f"``{handle.name}``{index}: {handle.row.__doc__}", ""]
    return "\n".join([*lines, "Scalars:", "", *(h.line() for h in handles.values() if isinstance(h, Fact))])


def _parameter(owner: type, name: str) -> str:
    """The type in the brackets of an annotation, as text: of ``Fact[float]`` it is ``float``."""
    return str(owner.__annotations__[name]).partition("[")[2].removesuffix("]")


def _is_of(values: pd.Series, kind: str) -> bool:
    """Whether a column can hold that kind: whole numbers are numbers, and what is unknown is of any kind."""
    dtypes = {"float": "fiub", "int": "iu", "bool": "b", "text": "OSTU", "time": "M"}
    if kind == "any" or values.dtype.kind in dtypes[kind]:
        return True
    known = values.dropna()
    if known.empty:
        return True
    types = {"float": (float, int), "int": (int,), "bool": (bool,), "text": (str, Statement)}.get(kind, ())
    whole = kind == "int" and known.dtype.kind == "f" and bool((known % 1 == 0).all())
    return whole or (known.dtype == object and all(isinstance(value, types) for value in known))
