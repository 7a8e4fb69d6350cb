"""Where the numbers come from: how inputs were read, what they cover, and what made the report."""

from __future__ import annotations

from gpudiag.measures.attribution import AttributionProfile
from gpudiag.measures.clock import ClockProfile
from gpudiag.measures.sampling import SamplingProfile
from gpudiag.report._render.blocks import Block, Chip, Figure, Folded, Heading, Note, Number, TableBlock
from gpudiag.report.document import Document, VerdictEntry
from gpudiag.report.format import count, gpus, named, plural, quantity, safe, span, zone
from gpudiag.report.noun import noun, said


def data_quality(document: Document) -> list[Block]:
    """Inputs and their oddities, coverage and the clock."""
    parts = (*_inputs(document), *_problems(document), *_coverage(document), _clock(document), Figure("clock"))
    parts += (*refuted_gpu(document), *open_clock(document))
    return [Folded("Data quality: inputs, gaps and clocks", (*parts, *_notes(document)))]


def _inputs(document: Document) -> list[Block]:
    if not document.inputs:
        return [Note("The run was built in memory: there is no input file to describe.")]
    where = zone(document.run.timezone)
    rows = tuple(
        (
            Chip("warning", "not read") if record.error else Chip("ok", "read"),
            safe(record.path),
            record.error or f"{record.kind}, {record.reader}",
            Number(count(record.rows)),
            span(record.start, record.end, where),
            Number(quantity(record.median_period_s, "s", exact=True)),
        )
        for record in document.inputs
    )
    caption = f"Times are in {document.run.timezone}."
    return [TableBlock(("Input", "Path", "Read as", "Rows", "From, to", "Period"), rows, caption)]


def _problems(document: Document) -> list[Block]:
    rows = tuple(
        (
            safe(record.path),
            safe(problem.kind),
            Number(count(problem.count)),
            "rows dropped" if problem.lost else "kept",
            (f"line {problem.line}: " if problem.line is not None else "") + safe(problem.example),
        )
        for record in document.inputs
        for problem in record.problems
    )
    if not rows:
        return [Note("No oddity was met while reading.", "ok")] if document.inputs else []
    return [
        Heading("Oddities met while reading"),
        TableBlock(("Path", "Oddity", "Cases", "Effect", "First case"), rows),
    ]


def _coverage(document: Document) -> list[Block]:
    sampling = document.values(SamplingProfile)
    covered = sampling.get(SamplingProfile.coverage_pct)
    if covered is None:
        return []
    n, longest = sampling.get(SamplingProfile.n_gaps), sampling.get(SamplingProfile.longest_gap_s)
    gaps = f"{plural(n, 'gap')}, the longest {quantity(longest, 's')}" if n else "no gaps"
    text = (
        f"Telemetry covers {quantity(covered, '%')} of the time it should, with a sample every "
        f"{quantity(sampling.get(SamplingProfile.median_period_s), 's')} and {gaps}. "
        "Gaps are never bridged: time without samples counts as unobserved."
    )
    return [Note(text)]


def _clock(document: Document) -> Note:
    clock = document.clock
    if not document.run.n_trials or not document.run.n_samples:
        return Note("One source of time only, so no clocks had to be matched.")
    sure = {"strong": "ok", "weak": "warning", "assumed": "note", "undetermined": "unknown"}
    offset = named("_s", clock.offset_s)
    evidence = f" {safe(clock.evidence)}" if clock.evidence else ""
    known = f"({clock.confidence}; {safe(clock.method)})"
    text = f"{noun(document).capitalize()}s' clock + {offset} = telemetry's clock {known}.{evidence}"
    return Note(text, sure.get(clock.confidence, "unknown"))


def refuted_gpu(document: Document) -> list[Note]:
    """Why the GPU that the trials state was not believed, where it was not."""
    of = document.values(AttributionProfile)
    gpu, n = of.get(AttributionProfile.refuted_gpu), of.get(AttributionProfile.n_refuted)
    if not n or gpu is None:
        return []
    marks = f"{plural(n, 'trial')} left their marks on other GPUs: memory and work there begin and end with them."
    if "," in gpu:
        text = (
            f"The trials of {safe(gpus(gpu.split(',')))} are exchanged: {marks} So the GPU of each of them was read "
            "off the telemetry. CUDA numbers GPUs by speed, nvidia-smi by bus. Set CUDA_DEVICE_ORDER=PCI_BUS_ID, or "
            "store the UUID of the GPU with each trial."
        )
    else:
        text = (
            f"The trials state GPU {safe(gpu)}, but {marks} So the GPU of each trial was read off the telemetry. A "
            "process that sees one GPU alone (CUDA_VISIBLE_DEVICES) calls it 0. Store CUDA_VISIBLE_DEVICES with each "
            "trial."
        )
    return [Note(text, "note")]


def open_clock(document: Document) -> list[Note]:
    """What is not said because nobody knows whether trials and telemetry are on one clock to the second."""
    clock = document.values(ClockProfile)
    if not clock or clock[ClockProfile.of_log] or clock[ClockProfile.exact] or not clock[ClockProfile.joined]:
        return []
    text = said(
        "Trials and telemetry may not be on one clock. So it is not said what the GPU waited for in trials, what it "
        "did between them, and what memory a trial took or left. State clock_offset_s in run.toml, 0 if the clocks are "
        "equal.",
        noun(document),
    )
    return [Note(text, "warning")]


def _notes(document: Document) -> list[Block]:
    """What run.toml and the readers remark."""
    notes = [*document.run.notes, *(note for record in document.inputs for note in record.notes)]
    return [Heading("Notes"), *(Note(safe(note)) for note in dict.fromkeys(notes))] if notes else []


def provenance(document: Document) -> list[Block]:
    """Hashes, versions, settings and the thresholds in force."""
    run = document.run
    read = (
        ("Run", safe(run.name)),
        ("Zone of timestamps that carry none", run.timezone),
        ("Studies", safe(", ".join(run.studies) or "none")),
    )
    blocks: list[Block] = [TableBlock(("Read", "As"), read)]
    if document.inputs:
        rows = tuple((safe(r.path), f"`{r.sha256}`" if r.sha256 else "–") for r in document.inputs)
        blocks.append(TableBlock(("Input", "SHA-256"), rows))
    settings = {**run.settings, **run.dataloader, **run.training}
    stated = [(f"`{name}`", named(name, value)) for name, value in settings.items()]
    stated += [(f"`{name}`, counted by hand", named(name, value)) for name, value in run.stated.items()]
    if stated:
        blocks += [Heading("Stated in run.toml, or to the recorder"), TableBlock(("Setting", "Value"), tuple(stated))]
    blocks += [Heading("Thresholds in force"), *_thresholds(document), Heading("Versions"), _versions(document)]
    return [Folded("Provenance: hashes, settings, thresholds and versions", tuple(blocks))]


def limits(verdict: VerdictEntry) -> list[tuple[str, str]]:
    """Thresholds of a verdict by name, as they were for this run."""
    changed = set(verdict.changed)
    return [
        (name, named(name, value) + (" (changed for this run)" if name in changed else ""))
        for name, value in verdict.thresholds.items()
    ]


def _thresholds(document: Document) -> list[Block]:
    rows = tuple(
        (f"`{v.rule}`", ", ".join(f"`{name}` {value}" for name, value in limits(v)))
        for v in sorted(document.verdicts, key=lambda verdict: verdict.rule)
        if v.thresholds
    )
    if not rows:
        return [Note("No rule has a threshold.")]
    return [Folded(f"Limits of {plural(len(rows), 'rule')}", (TableBlock(("Rule", "Limits"), rows),))]


def _versions(document: Document) -> TableBlock:
    made = document.environment
    versions = {"gpudiag": document.version, "python": made.python, **made.packages}
    rows = tuple((name, version) for name, version in versions.items())
    return TableBlock(("Software", "Version"), rows)
