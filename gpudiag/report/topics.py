"""The sections about one topic each: numbers measured, beside the picture of the same profile."""

from __future__ import annotations

from typing import Any

from gpudiag.report.blocks import Block, Cell, Figure, Heading, Note, Number, Table, Tiles
from gpudiag.report.bottleneck import bottleneck
from gpudiag.report.document import Document, NotMeasured
from gpudiag.report.format import UNKNOWN, interval, named, plural, quantity, safe, share
from gpudiag.schema import STATES

Columns = tuple[tuple[str, str], ...]
"""Names of facts and the words beside them."""

OUTCOMES: Columns = (
    ("n", "trials"),
    ("span_s", "from first start to last end"),
    ("fail_pct", "of finished trials failed"),
    ("orphans", "or more RUNNING but dead"),
)
PRUNING: Columns = (
    ("cost_pct", "of slot time went to pruned trials"),
    ("median_step", "median last step"),
    ("first_step", "earliest last step"),
    ("budget_pct", "of their full budget was used"),
)
AT_ONCE: Columns = (
    ("effective", "trials at once, effectively"),
    ("configured", "were configured"),
    ("peak", "at the peak"),
    ("efficiency_pct", "of the configured slots used"),
    ("median_gap_s", "median gap in a slot"),
    ("n_open", "without a known end"),
)
USE: Columns = (
    ("mean_pct", "Mean"),
    ("p5_pct", "p5"),
    ("p50_pct", "Median"),
    ("p95_pct", "p95"),
    ("max_pct", "Max"),
    ("idle_pct", "Idle"),
    ("idle_gpu_h", "Idle time"),
    ("coverage_pct", "Observed"),
)
POWER: Columns = (
    ("mean_w", "Mean power"),
    ("max_w", "Max"),
    ("limit_w", "Limit"),
    ("energy_kwh", "Energy"),
    ("mean_temp_c", "Mean temp."),
    ("max_temp_c", "Max temp."),
    ("n_rejected", "Set aside"),
)
MEMORY: Columns = (
    ("total_mib", "Total"),
    ("mean_mib", "Mean"),
    ("p99_mib", "p99"),
    ("max_mib", "Max"),
    ("max_used_pct", "Max used"),
    ("headroom_mib", "Headroom"),
)


def trials(document: Document) -> list[Block]:
    """What became of the trials, how long they took, and how much was pruned."""
    facts = document.values("trials")
    if not facts:
        return [_missing(document, "trials")]
    blocks: list[Block] = [_tiles(facts, *OUTCOMES)]
    rows = [_outcome(facts, state) for state in STATES if facts.get(f"state.{state}.n")]
    columns = ("State", "Trials", "Share", "95 % interval", "Median", "Longest", "Slot time")
    blocks.append(Table(columns, tuple(rows), "Shares are of all trials; durations of those with a known end."))
    return [*blocks, Figure("durations"), Figure("duration_ecdf"), Figure("parallel_coordinates"), *_pruning(document)]


def _outcome(facts: dict[str, Any], state: str) -> tuple[str | Number, ...]:
    def fact(name: str) -> Any:
        return facts.get(f"state.{state}.{name}")

    times = [named(name, fact(name)) for name in ("median_s", "max_s", "total_slot_s")] if fact("n_timed") else []
    return (
        state,
        Number(named("n", fact("n"), exact=True)),
        Number(share(fact("share_pct"), exact=True)),
        Number(interval(fact("low_pct"), fact("high_pct"), "%")),
        *(Number(text) for text in times or [UNKNOWN] * 3),
    )


def _pruning(document: Document) -> list[Block]:
    facts = document.values("pruning")
    if not facts.get("n_pruned"):
        return []
    bases = (("of_all", "all trials"), ("of_finished", "finished trials"), ("of_decided", "COMPLETE and PRUNED"))
    rows = tuple(
        (f"of {name}", Number(share(facts[f"{key}_pct"], exact=True)),
         Number(interval(facts[f"{key}_low_pct"], facts[f"{key}_high_pct"], "%")))
        for key, name in bases
    )  # fmt: skip
    tiles = _tiles(facts, *PRUNING)
    caption = "The pruning rate in its three definitions: they differ, so a rate without its base says little."
    return [Heading("Pruning"), tiles, Table(("Pruned", "Rate", "95 % interval"), rows, caption), Figure("prune_steps")]


def timeline(document: Document) -> list[Block]:
    """Nothing but its picture; without trials, what would draw it."""
    return [Figure("timeline") if document.values("parallelism") else _missing(document, "parallelism")]


def parallelism(document: Document) -> list[Block]:
    """How many trials ran at once, against what was asked for."""
    facts = document.values("parallelism")
    if not facts:
        return [_missing(document, "parallelism")]
    tiles = _all_slots(_tiles(facts, *AT_ONCE), facts)
    pictures = (Figure("concurrency"), Figure("gaps"))
    low, high = facts.get("effective_low"), facts.get("effective_high")
    if not facts.get("n_open") or low is None or high is None:
        return [tiles, *pictures]
    text = (
        f"{plural(facts['n_open'], 'trial')} never got an end in the study. Counted to their last sign of life, "
        f"{quantity(low)} trials ran at once; counted to the end of the study, {quantity(high)}."
    )
    return [tiles, Note(text), *pictures]


def _all_slots(tiles: Tiles, facts: dict[str, Any]) -> Tiles:
    """A share above 100 % in words: more trials ran than there were slots for them."""
    used = facts.get("efficiency_pct")
    if used is None or used <= 100:
        return tiles
    words = dict(AT_ONCE)["efficiency_pct"]
    more = f"all, and {share(used - 100)} more"
    return Tiles(tuple((name, more if name == words else value) for name, value in tiles.items))


def utilization(document: Document) -> list[Block]:
    """How busy each GPU was, and what power it drew."""
    use = _per_gpu(document, "utilization")
    caption = "Weighted by time, over the whole record. Idle is utilization of 10 % or less. 100 % says only that "
    caption += "some kernel always ran."
    blocks: list[Block] = [_missing(document, "utilization")]
    if use:
        several = [Figure("utilization_map")] if len(use) > 1 else []
        table = _gpu_table(use, USE, caption)
        blocks = [*_room(document), Figure("utilization"), *several, table, *bottleneck(document)]
    power = _per_gpu(document, "power")
    if power:
        caption = "Readings that the board cannot produce are set aside before a mean is taken."
        blocks += [
            Heading("Power and temperature"),
            Figure("power"),
            Figure("power_use"),
            _gpu_table(power, POWER, caption),
        ]
    return blocks


def _room(document: Document) -> list[Block]:
    """What this run's utilization leaves to gain at most; nothing where it is unknown."""
    busy = document.advice.busy_pct
    if not busy:
        return []
    when = "while trials ran" if document.values("ledger").get("has_trials") else "over the whole record"
    most = 100 / busy
    text = (
        f"Mean utilization {when} was {share(busy)}: the same work on the GPU cannot be done more than "
        f"{quantity(most)} times as fast, whatever is changed."
    )
    return [Note(text)]


def memory(document: Document) -> list[Block]:
    """How full each GPU's memory was."""
    use = _per_gpu(document, "memory")
    if not use:
        return [_missing(document, "memory")]
    caption = "What the driver reports: a framework's cache counts as used."
    return [Figure("memory"), _gpu_table(use, MEMORY, caption)]


def _gpu_table(rows: dict[str, dict[str, Any]], columns: Columns, caption: str) -> Table:
    """A row a GPU; columns without any value are left out."""
    kept = [(name, title) for name, title in columns if any(row.get(name) is not None for row in rows.values())]
    body: list[tuple[Cell, ...]] = []
    for gpu, row in rows.items():
        body.append((f"GPU {gpu}", *(Number(named(name, row.get(name), exact=True)) for name, _ in kept)))
    return Table(("GPU", *(title for _, title in kept)), tuple(body), caption)


def _tiles(facts: dict[str, Any], *wanted: tuple[str, str]) -> Tiles:
    """The facts that are known, as key numbers."""
    items = [(text, named(name, facts.get(name))) for name, text in wanted]
    return Tiles(tuple(item for item in items if item[1] != UNKNOWN))


def _per_gpu(document: Document, topic: str) -> dict[str, dict[str, Any]]:
    """Facts named ``gpu.<gpu>.<name>`` as {gpu: {name: value}}."""
    out: dict[str, dict[str, Any]] = {}
    for name, value in document.values(topic).items():
        if name.startswith("gpu."):
            gpu, _, column = name.removeprefix("gpu.").rpartition(".")
            out.setdefault(gpu, {})[column] = value
    return out


def _missing(document: Document, topic: str) -> Note:
    gap = document.not_measured.get(topic, NotMeasured(f"{topic} was not measured.", ""))
    return Note(safe(f"{gap.reason} {gap.remedy}").strip(), "unknown")
