"""Every error gpudiag raises on purpose.

    GpudiagError
    ├── InputError            an input cannot be read as what it should be
    │   ├── InputNotFound     nothing at that path
    │   ├── UnknownInput      no reader recognises the content
    │   └── StudyNotFound     the storage is fine, the study is not in it
    ├── ConfigError           run.toml, a threshold, a notebook parameter or an option is wrong
    │   └── PackageMissing    an optional package is not installed (an ImportError too)
    ├── NotMeasurable         the run lacks what a measure needs (becomes NOT_ASSESSED)
    │   └── NotGiven          it lacks an input that few runs have, such as a trace (becomes NOT_APPLICABLE)
    └── ReportError           a notebook cell failed while a report was made

Each message is one sentence or two: what was expected, what came, where, and the remedy.
The command line prints it and exits with 2.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from gpudiag.values import Value, Values


class GpudiagError(Exception):
    """Root of the tree; catching it catches every deliberate failure."""


class InputError(GpudiagError, ValueError):
    """An input cannot be read as what it should be."""

    @classmethod
    def unopened(cls, path: object, error: OSError) -> InputError:
        """The error for a file or folder that the system does not open."""
        return cls(f"{path}: cannot be opened ({error.strerror or error}).")


STANDARD_INPUT = "-: standard input is not read, since a file is looked at twice; save it to a file and give that."


class InputNotFound(InputError, FileNotFoundError):
    """Nothing is at that path."""

    def __str__(self) -> str:  # FileNotFoundError would print errno form
        return str(self.args[0]) if self.args else "input not found"

    @classmethod
    def run(cls, path: object) -> InputNotFound:
        """The error for a run that is not there."""
        if str(path) == "-":
            return cls(STANDARD_INPUT)
        expected = "a run folder, a run.toml, a file, a storage URL or a tracker's run such as mlflow:RUN_ID"
        return cls(f"{path}: no such file or folder; expected {expected}.")


class UnknownInput(InputError):
    """No reader recognises the content."""


class StudyNotFound(InputError, LookupError):
    """The storage can be read, but the study named is not in it."""


class ConfigError(GpudiagError, ValueError):
    """run.toml, a threshold, a notebook parameter or an option is wrong."""


class PackageMissing(ConfigError, ImportError):
    """An optional package is not installed."""


class NotMeasurable(GpudiagError):
    """The run lacks what a measure needs.

    ``reason`` says what is missing; ``remedy`` says what would have collected it. Rules turn this
    into a NOT_ASSESSED verdict, so both are written for the person who reads the report. Numbers are given as values
    by name, and both texts are then templates over them:
    ``NotMeasurable("Only {observed_s} were observed.", "Record for longer.", observed_s=42.0)``.
    """

    def __init__(self, reason: str, remedy: str = "", /, **values: Value) -> None:
        super().__init__(reason, remedy)
        self.values = values

    @property
    def reason(self) -> str:
        """What is missing, in words."""
        return in_words(self.args[0], self.values)

    @property
    def remedy(self) -> str:
        """What would have collected it, in words; may be empty."""
        return in_words(self.args[1], self.values)

    def shown(self, show_in: str) -> tuple[str, str]:
        """Reason and remedy with times in that zone."""
        reason, remedy = (in_words(text, self.values, show_in) for text in self.args)
        return reason, remedy

    def __str__(self) -> str:
        return f"{self.reason} {self.remedy}".rstrip()


class NotGiven(NotMeasurable):
    """The run lacks an input that few runs have, such as a trace: rules turn this into NOT_APPLICABLE."""


class ReportError(GpudiagError, RuntimeError):
    """A notebook cell failed while a report was made."""


def in_words(template: str, values: Values, show_in: str = "UTC") -> str:
    """A template with its values as people read them, times in that zone; without values the text itself.

    Words are made far above this layer, which therefore asks for them by name.
    """
    if not values:
        return template
    return str(importlib.import_module("gpudiag.report.sentence").render(template, values, show_in))


def expected(what: str, given: object) -> ConfigError:
    """The error for an argument of a wrong type, as in 'expected a path, but got int'."""
    return ConfigError(f"expected {what}, but got {'None' if given is None else type(given).__name__}.")


MOST_NAMES = 20
"""Names that an error lists; a reader looks through no more."""


def nearest(name: str, legal: Iterable[str]) -> str:
    """A hint for a misspelt name: ``did you mean 'x'?`` or the list of legal names."""
    options = sorted(legal)
    close = get_close_matches(name, options, n=1, cutoff=0.8) or _shortened(name, options)
    close = close or get_close_matches(name, options, n=1, cutoff=0.6)
    if close:
        return f"did you mean '{close[0]}'?"
    if len(options) > MOST_NAMES:
        return f"legal are {', '.join(options[:MOST_NAMES])} and {len(options) - MOST_NAMES} more"
    return f"legal names are: {', '.join(options)}"


def _shortened(name: str, options: Sequence[str]) -> list[str]:
    """The option that a name abbreviates, as 'gpu-lowutil' does 'gpu-low-utilization': its letters are all in it, in
    their order; of several the one most like it.
    """
    holding = [one for one in options if len(name) > 2 and one[:1] == name[:1] and _in_order(name, one)]
    return get_close_matches(name, holding, n=1, cutoff=0.0)


def _in_order(letters: str, text: str) -> bool:
    rest = iter(text)
    return all(letter in rest for letter in letters)
