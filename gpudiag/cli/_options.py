"""Every option that several commands take, declared once, and groups of them by which commands take them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from gpudiag.cli._arguments import check_given, existing_runs, names, one_of, rule_modules, suppression_file


def choice(flag: str, *legal: str, help: str = "", former: Mapping[str, str] | None = None) -> Any:
    """An option that takes one of these values, or a former name of one; the help lists them unless it is given."""
    said = ", ".join(legal[:-1]) + f" or {legal[-1]}"

    def checked(value: str) -> str:
        named = (former or {}).get(value, value)
        one_of(flag, named, legal)
        return named

    return typer.Option(flag, help=help or said, callback=checked)


LEVELS = ("critical", "warning", "note", "never")
FailOn = Annotated[str, choice("--fail-on", *LEVELS, former={"info": "note"})]
Parameters = Annotated[
    list[str] | None, typer.Option("-p", "--parameter", metavar="NAME=VALUE", help="notebook parameter; repeatable")
]
RunPath = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="RUN",
        help="a run folder, a run.toml, or files and storage URLs of one run",
        show_default=False,
        callback=existing_runs,
    ),
]
Timezone = Annotated[
    str | None, typer.Option("--timezone", help="zone of timestamps that carry none, e.g. Asia/Taipei")
]
Study = Annotated[str | None, typer.Option("--study", help="the one study to read")]
RuleModules = Annotated[
    list[str] | None,
    typer.Option("--rules", metavar="MODULE", help="rules of your own: an import path or a .py file; repeatable"),
]


@dataclass(frozen=True)
class ReadingOptions:
    """What a file of a run does not say itself."""

    timezone: Timezone = None
    columns: Annotated[str, typer.Option("--columns", metavar="NAMES", help="names for a file without header")] = ""
    period: Annotated[float | None, typer.Option("--period", help="seconds between samples without timestamps")] = None

    def arguments(self) -> dict[str, Any]:
        """As arguments of the library, those not given included."""
        return {"timezone": self.timezone, "columns": names(self.columns), "period_s": self.period}


@dataclass(frozen=True)
class Inputs:
    """The inputs of a run, named by kind."""

    telemetry: Annotated[
        list[str] | None, typer.Option("--telemetry", metavar="FILE...", help="logs of GPU metrics")
    ] = None
    trials: Annotated[str | None, typer.Option("--trials", metavar="URL|FILE", help="study or trial table")] = None
    artifacts: Annotated[
        list[str] | None, typer.Option("--artifacts", metavar="FILE...", help="task and training logs")
    ] = None
    study: Study = None
    between: Annotated[
        str | None,
        typer.Option("--between", metavar="FROM,TO", help="only this span, e.g. '2026-03-01 10:00,2026-03-01 12:00'"),
    ] = None

    gpus: Annotated[
        str | None, typer.Option("--gpus", metavar="GPU,GPU...", help="only these GPUs, by index or UUID, such as 2,3")
    ] = None

    @property
    def any(self) -> bool:
        """Whether an input was named."""
        return bool(self.telemetry or self.trials or self.artifacts)

    def arguments(self, run: list[str] | None, layout: ReadingOptions) -> dict[str, Any]:
        """What was given of the run, these and the layout, as arguments of load_run."""
        given = {"telemetry": self.telemetry, "trials": self.trials, "artifacts": self.artifacts}
        given |= {"study": self.study, "between": self.between, "gpus": self.gpus}
        source = run if run and len(run) > 1 else "".join(run or [])
        return {"source": source} | {name: value for name, value in {**given, **layout.arguments()}.items() if value}

    def checked(self, run: list[str] | None, layout: ReadingOptions) -> dict[str, Any]:
        """As :meth:`arguments`. Raises ConfigError where neither a run nor an input was given."""
        check_given(run, self.any)
        return self.arguments(run, layout)


@dataclass(frozen=True)
class Judging:
    """By what a run is judged."""

    preset: Annotated[
        str, typer.Option("--preset", metavar="NAME", help="thresholds of another tool: jobstats, sagemaker or traceml")
    ] = ""
    threshold: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="RULE.THRESHOLD=VALUE", help="override a threshold; repeatable"),
    ] = None
    suppress: Annotated[
        Path | None,
        typer.Option(
            "--suppress",
            metavar="FILE",
            help="findings not to be told; default: gpudiag.toml beside run.toml, else in this folder",
            show_default=False,
        ),
    ] = None
    rules: RuleModules = None

    def arguments(self, run: list[str] | None) -> dict[str, Any]:
        """As arguments of diagnose, those not given included."""
        found = suppression_file(self.suppress, run)
        return self.without_file() | {"suppress": found}

    def without_file(self) -> dict[str, Any]:
        """As :meth:`arguments`, without the file of suppressions, which is sought beside each run."""
        return {"thresholds": self.threshold or [], "preset": self.preset, "rules": rule_modules(self.rules)}


@dataclass(frozen=True)
class OnFault:
    """What is done about a part that failed."""

    strict: Annotated[
        bool, typer.Option("--strict", help="exit with 3 where any part failed, of gpudiag or a rule of your own")
    ] = False
    debug: Annotated[bool, typer.Option("--debug", help="print the traceback of a part that failed")] = False


def as_typed(*groups: Any) -> list[str]:
    """What was given of the options of these groups, as somebody would type it for another process."""
    out: list[str] = []
    for group in groups:
        hints = get_type_hints(type(group), include_extras=True)
        for one in fields(group):
            value = getattr(group, one.name)
            option = hints[one.name].__metadata__[0]
            flag = next(name for name in (option.default, *option.param_decls) if str(name).startswith("--"))
            out += [f"{flag}={item}" for item in (value if isinstance(value, list) else [value]) if item]
    return out


def taking_groups(command: Callable[..., None]) -> Callable[..., None]:
    """The command as typer takes it: a parameter that is a group of options is replaced by the options of the group."""
    hints = get_type_hints(command, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters: list[Parameter] = []
    for name, parameter in signature(command).parameters.items():
        parameters += _options(groups[name]) if name in groups else [parameter.replace(annotation=hints[name])]

    @wraps(command)
    def called(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{one.name: given.pop(one.name) for one in fields(group)})  # type: ignore[operator]
        command(**given)

    called.__signature__ = Signature([one.replace(kind=Parameter.KEYWORD_ONLY) for one in parameters])  # type: ignore[attr-defined]
    called.__annotations__ = {one.name: one.annotation for one in parameters}
    return called


def _options(group: Any) -> list[Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        Parameter(one.name, Parameter.KEYWORD_ONLY, default=one.default, annotation=hints[one.name])
        for one in fields(group)
    ]
