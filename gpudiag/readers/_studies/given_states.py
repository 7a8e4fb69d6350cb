"""The states of trials as a table gives them: by name, as members of an enumeration, or as Optuna's numbers of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

from gpudiag.errors import InputError
from gpudiag.readers._batches.task_words import REASONS, STATE_OF, word_of

NUMBERED = ("RUNNING", "COMPLETE", "PRUNED", "FAIL", "WAITING")
"""Optuna's TrialState by its number, which is all that is left of a member in a column of pandas or a CSV file."""
NUMBERS_READ = "Its states are numbers, read as those of Optuna's TrialState (1 is COMPLETE, 2 PRUNED, 3 FAIL)."
NO_STATES = "Its rows have no state: each trial with a value is taken as COMPLETE, so pruned ones count as such."
_MEMBER = re.compile(r"TrialState\.(\w+)")
_ENDS = ("datetime_complete", "end")
_NEVER = {
    "RUNNING": ("a value", "an end"),
    "WAITING": ("a value", "an end"),
    "FAIL": ("a value",),
    "COMPLETE": ("no value",),
}
"""What no trial in that state has."""


def state_of(cell: object) -> str:
    """``COMPLETE``, also of ``TrialState.COMPLETE`` and ``<TrialState.COMPLETE: 1>``, and what other tools call it."""
    text = name_of(cell)
    word = member[1] if (member := _MEMBER.search(text)) else text.rpartition(".")[2].strip()
    return STATE_OF.get(word_of(word), word.upper())


def reason_of(cell: object) -> str | None:
    """The word for a failure, where it says why; None elsewhere."""
    return word if (word := word_of(name_of(cell))) in REASONS else None


def name_of(cell: object) -> str:
    """The text of a cell; of a member of an enumeration its name, for some show their number."""
    return str(cell.name if isinstance(cell, Enum) else cell)


def are_numbers(cells: Iterable[object]) -> bool:
    """Whether all cells that are not empty are whole numbers, and there is one."""
    known = [cell for cell in cells if cell is not None]
    return bool(known) and all(map(_is_whole, known))


def _is_whole(cell: object) -> bool:
    return isinstance(cell, int | float) and not isinstance(cell, bool | Enum) and float(cell).is_integer()


def named(columns: Mapping[str, Sequence[object]], where: str) -> dict[str, Sequence[object]]:
    """The columns with names in place of Optuna's numbers of states.

    Raises InputError where the numbers cannot be Optuna's: what has a value or an end is not waiting or running, what
    failed has no value, and what is complete has one.
    """
    if not are_numbers(columns.get("state", ())):
        return dict(columns)
    states = [None if cell is None else _named(cell, where) for cell in columns["state"]]
    values = [cells for name, cells in columns.items() if name.partition("_")[0] in ("value", "values")]
    ends = [columns[name] for name in _ENDS if name in columns]
    for row, state in enumerate(states):
        valued, ended = (any(cells[row] is not None for cells in some) for some in (values, ends))
        facts = {"a value": valued, "no value": bool(values) and not valued, "an end": ended}
        for never in _NEVER.get(state or "", ()):
            if facts[never]:
                raise _refused(where, f"by these, a trial in state {columns['state'][row]}, {state}, has {never}")
    return {**columns, "state": states}


def _named(cell: object, where: str) -> str:
    number = int(str(cell).partition(".")[0])
    if not 0 <= number < len(NUMBERED):
        raise _refused(where, f"there is no {number}")
    return NUMBERED[number]


def _refused(where: str, why: str) -> InputError:
    return InputError(
        f"{where}: column 'state' holds numbers that are not those of Optuna's TrialState ({why}); expected names such "
        "as COMPLETE."
    )
