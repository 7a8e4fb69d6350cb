"""The section on the steps of a training: by its own log, by a profiler, and by the recorders of its collectives."""

from __future__ import annotations

from gpudiag.measures.loader import LoaderProfile
from gpudiag.measures.steps import StepsProfile
from gpudiag.report._render.blocks import Block, Figure, Note, Number, TableBlock
from gpudiag.report._sections.collectives import collectives
from gpudiag.report._sections.mfu import mfu
from gpudiag.report._sections.profiled import profiled
from gpudiag.report._sections.step_times import step_times
from gpudiag.report.document import Document, TopicValues
from gpudiag.report.format import duration, listed, plural, share

WELL_PCT = 95.0
"""From this goodput on a sentence says enough."""
UNDATED = 0.02
"""Share of lines; a damaged one or two are no matter."""
NO_CLOCK = "its lines on steps have no timestamps"
"""Of a log: other lines of it may have some."""


def steps(document: Document) -> list[Block]:
    """How long a step took, what time passed outside of steps, which part of the GPU's FLOPs the model did, what the
    GPU did in profiled steps, and in which collective the training hangs; nothing where no input says so.
    """
    return [*collectives(document), *_logged(document), *mfu(document), *profiled(document)]


def _logged(document: Document) -> list[Block]:
    facts = document.values(StepsProfile)
    if not facts:
        return []
    unit, wall_s = str(facts[StepsProfile.unit]), _wall_s(facts)
    goodput, most = facts.get(StepsProfile.goodput_pct), "At most " if facts.get(StepsProfile.n_unclear) else ""
    took_s = facts.get(StepsProfile.step_s)
    told, n = step_times(document)
    in_each = f" of {plural(n, 'training')}" if n > 1 else ""
    said = f"One {unit} took {told} in the median{in_each}. " if told else ""
    said += (
        _as_a_whole(facts)
        if took_s is None
        else _unseen(facts, unit)
        if goodput is None
        else f"{most}{share(goodput)} of the {duration(wall_s)} in the log went into {unit}s that count."
    )
    failures = facts.get(StepsProfile.mttf_s)
    if failures is not None:
        n_resumed = facts[StepsProfile.n_resumed]
        every = f", every {duration(failures)} on average" if n_resumed > 1 else ""
        said += f" It was resumed {plural(n_resumed, 'time')}{every}."
    undated, few = facts[StepsProfile.n_undated], facts[StepsProfile.n_left_out]
    if undated > UNDATED * facts[StepsProfile.n_step_lines]:
        said += (
            f" {plural(undated, 'line')} have timestamps before those of earlier lines, and tell nothing of the time."
        )
    if few:
        said += f" {plural(few, 'training')} with too few lines to tell {'is' if few == 1 else 'are'} left out."
    said += _of_files(facts)
    loader = document.values(LoaderProfile)
    waits = loader.get(LoaderProfile.of_step_pct) if loader else None
    if waits is not None:
        said += f" By the log {share(min(waits, 100))} of a step is spent waiting for data."
    parts = [_parts(facts, wall_s)] if goodput is not None and goodput < WELL_PCT else []
    return [Note(said), *parts, Figure("step_time")]


def _unseen(facts: TopicValues, unit: str) -> str:
    """What is known of the time outside of steps where no timestamps show all of it."""
    seen_s = facts.get(StepsProfile.pauses_s)
    if seen_s:
        return f"At least {duration(seen_s)} passed outside of {unit}s. It may be more: {NO_CLOCK}."
    return f"How much time passed outside of {unit}s is unknown: {NO_CLOCK}."


def _as_a_whole(facts: TopicValues) -> str:
    """What is known where no line tells how long a step took."""
    whole, evaluated = (duration(facts[name]) for name in (StepsProfile.logged_s, StepsProfile.evaluations_s))
    return (
        f"The log's lines on steps have no timestamps. It states that all of it took {whole} and its evaluations "
        f"{evaluated}, but not how long a step took."
    )


def _of_files(facts: TopicValues) -> str:
    """Which files are one log, and of which that is not clear."""
    joined, twice, unclear = (
        facts.get(fact) or 0 for fact in (StepsProfile.n_joined, StepsProfile.n_twice, StepsProfile.n_unclear)
    )
    said = ""
    if joined:
        said += f" {plural(joined, 'file')} {'goes' if joined == 1 else 'go'} on where another ended."
    if twice:
        said += f" {plural(twice, 'file')} with the same steps as another {'is' if twice == 1 else 'are'} left out."
    if unclear:
        said += f" {plural(unclear, 'file')} may go on with the training of another, but each is judged alone."
    return said


def _wall_s(facts: TopicValues) -> float:
    """Start-up, where the log tells of it, and all from the first steps on."""
    return (facts.get(StepsProfile.startup_s) or 0.0) + facts[StepsProfile.logged_s]


def _parts(facts: TopicValues, wall_s: float) -> TableBlock:
    """What the time of the log went into; the rows add up to it."""
    unit = facts[StepsProfile.unit]
    down_s = facts[StepsProfile.down_s]
    held = {
        f"{unit}s that count".capitalize(): facts[StepsProfile.goodput_pct] / 100 * wall_s,
        "Start-up": facts.get(StepsProfile.startup_s) or 0.0,
        f"Slow first {unit}s": facts[StepsProfile.first_s],
        f"Pauses{_told(facts)}": facts[StepsProfile.pauses_s],
        "Down, until the next step": down_s,
        f"{unit}s done twice".capitalize(): facts[StepsProfile.resumption_s] - down_s,
    }
    rows = tuple(
        (name, Number(share(100 * seconds / wall_s)), Number(duration(seconds)))
        for name, seconds in held.items()
        if seconds > wall_s / 1000
    )
    return TableBlock(("Time of the log", "Share", "Time"), rows)


def _told(facts: TopicValues) -> str:
    """'(evaluations 4 min, checkpoints at most 2 min)'."""
    told = {
        "evaluations": (facts[StepsProfile.evaluations_low_s], facts[StepsProfile.evaluations_s]),
        "checkpoints": (facts[StepsProfile.checkpoints_low_s], facts[StepsProfile.checkpoints_s]),
    }
    named = [
        f"{what} {'at most ' if duration(low) != duration(high) else ''}{duration(high)}"
        for what, (low, high) in told.items()
        if high
    ]
    return f" ({listed(named, 'and')})" if named else ""
