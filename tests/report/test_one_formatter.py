"""Numbers for readers get their form in one place, and the same quantity reads the same wherever it is said."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpudiag.report.format import duration, energy, hours, memory, named, quantity, share
from gpudiag.report.sentence import render

PACKAGE = Path(__file__).resolve().parents[2] / "gpudiag"
ELSEWHERE = {
    "report/format.py": "the formatter",
    "forecast/memory/constraint.py": "coefficients in generated Python, and bins of a parameter's own values",
    "plots/parallel_coordinates.py": "ticks of a parameter's own values",
    "record/sink.py": "cells of the recorder's CSV",
    "record/status.py": "the status line beside a progress bar, whose form is documented",
    "readers/_fields/metric_names.py": "the index of a GPU, which came as a float",
    "readers/_shape/long_form.py": "the number of an Xid error, which came as a float",
    "readers/telemetry/prometheus_text.py": "the number of an Xid error, which came as a float",
    "readers/_shape/machines.py": "what an input says, in the units of the input",
    "readers/_studies/optuna_clock.py": "what an input says, in the units of the input",
    "readers/trials/optuna_sqlite.py": "the time-out of a connection, in seconds as set",
    "simulation/files.py": "rows as nvidia-smi writes them",
    "simulation/world.py": "an error message as PyTorch writes it",
    "simulation/trainings/log.py": "lines as frameworks write them",
    "simulation/cases/case.py": "known truth, exact for tests",
}
_SPEC = re.compile(r"(?:\.(?:\d+|\{\})[eEfFgG]|[eEfF]|%)$")
_FIELD = re.compile(r"\{\w*:([^{}]*\.\d+[eEfFgG%])\}")


def float_specs(source: str) -> Iterator[str]:
    """Format specifications of floats in f-strings, in templates for str.format, and in calls of format()."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FormattedValue) and isinstance(node.format_spec, ast.JoinedStr):
            parts = [v.value if isinstance(v, ast.Constant) else "{}" for v in node.format_spec.values]
            spec = "".join(map(str, parts))
            if _SPEC.search(spec) and not re.search(r"%[YmdHMSbjy]", spec):
                yield spec
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from _FIELD.findall(node.value)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "format" and len(node.args) == 2:
            yield ast.unparse(node.args[1])


@pytest.mark.slow
def test_only_the_formatter_gives_floats_their_form() -> None:
    found = {
        str(path.relative_to(PACKAGE)): list(float_specs(path.read_text(encoding="utf-8")))
        for path in sorted(PACKAGE.rglob("*.py"))
    }
    stray = {name: specs for name, specs in found.items() if specs and name not in ELSEWHERE}
    assert not stray, f"say these numbers with gpudiag.report.format: {stray}"
    assert {name for name, specs in found.items() if specs} == set(ELSEWHERE), "the list names files that need it not"


@pytest.mark.slow
@pytest.mark.parametrize("room", ["alignment", "measures", "forecast", "comparison"])
def test_rooms_of_numbers_leave_words_to_the_report(room: str) -> None:
    """They hold templates with typed values; only text of an input is made safe there. Errors quote what they got."""
    for path in sorted((PACKAGE / room).rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imported = {(n.module, a.name) for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) for a in n.names}
        taken = {name for module, name in imported if module == "gpudiag.report.format"} - {"safe"}
        assert not taken, f"{path.name} makes words of numbers by itself with {taken}; give a Statement"
        errors = {id(inner) for n in ast.walk(tree) if isinstance(n, ast.Raise) for inner in ast.walk(n)}
        specs = [
            n for n in ast.walk(tree) if isinstance(n, ast.FormattedValue) and n.format_spec and id(n) not in errors
        ]
        said = [ast.unparse(n.format_spec) for n in specs if isinstance(n.format_spec, ast.JoinedStr)]
        counts = [text for text in said if re.fullmatch(r"f?['\"][,+]?[gd]?['\"]", text)]
        assert not counts, f"{path.name} writes numbers by itself: {counts}"


@pytest.mark.parametrize(
    "text", ['f"{x:.1f} %"', 'f"{x:,.{n}f}"', 'f"{x:.0%}"', '"{x:.3g}".format(x=1)', 'f"{x:+.2e}"']
)
def test_the_guard_sees_each_way_to_write_one(text: str) -> None:
    assert len(list(float_specs(text))) == 1


@pytest.mark.parametrize("text", ['f"{n:,}"', 'f"{name:<8}"', 'f"{at:%Y-%m-%d %H:%M:%S}"', 'render("{n:trial}", n)'])
def test_the_guard_leaves_counts_columns_and_dates_alone(text: str) -> None:
    assert not list(float_specs(text))


@pytest.mark.parametrize(
    ("name", "value", "unit", "said"),
    [
        ("wall_s", 551.0, "s", "9 min 11 s"),
        ("total_worker_s", 0.28 * 3600, "worker-s", "0.28 worker-h"),
        ("mean_util_pct", 97.4, "%", "97.4 %"),
        ("used_mib", 23.1 * 1024, "MiB", "23.1 GiB"),
        ("energy_kwh", 1.44, "kWh", "1.44 kWh"),
    ],
)
def test_a_quantity_reads_the_same_in_rules_sections_comparisons_and_figures(
    name: str, value: float, unit: str, said: str
) -> None:
    functions = {
        "s": duration,
        "worker-s": lambda x: hours(x / 3600, "worker-h"),
        "%": lambda x: share(x, exact=True),
        "MiB": memory,
        "kWh": lambda x: energy(x, exact=True),
    }
    assert render(f"{{{name}:exact}}", {name: value}) == said, "a rule's sentence"
    assert named(name, value, exact=True) == said, "a section's table"
    assert quantity(value, unit, exact=True) == said, "a comparison's table"
    assert functions[unit](value) == said, "advice, comparisons and figures in words"
