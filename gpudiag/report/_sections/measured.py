"""A measure of a plan in words: ``trials.fail_pct`` is 'failure rate'."""

from __future__ import annotations

from gpudiag.facts import LABELS
from gpudiag.report.format import gpus, label, quantity

ALONE = {
    "abandoned": "dead trials marked RUNNING",
    "before_possible": "trials pruned earlier than the stated pruner can",
    "duplicate_pct": "trials that repeat an earlier one",
    "duplicate_worker_h": "time of repeated trials",
    "effective": "trials at once on average",
    "efficiency_pct": "trials at once, of those configured",
    "fail_pct": "failure rate",
    "max_used_pct": "peak GPU memory",
    "median_s": "median duration",
    "mean_util_pct": "mean GPU utilization",
    "n_after_grid": "trials after the whole grid",
    "n_duplicates": "repeated trials",
    "n_enqueued": "repeats that were enqueued",
    "n_same_seed": "repeats in the order of the first",
    "of_decided_pct": "pruning rate",
}
"""Names that need more words where no finding says what they are of."""
OPERATORS = {"<": "below", "<=": "at most", ">": "above", ">=": "at least"}


def measured(key: str) -> str:
    """The measure of that key in words, of which row where it is in a table."""
    name = key.rpartition(".")[2]
    words = ALONE.get(name) or LABELS.get(name) or label(name)
    _, *table = key.split(".")[:-1]
    if len(table) < 2:
        return words
    row = ".".join(table[1:])
    return f"{words} of {gpus([row]) if table[0] == 'gpu' else row}"


def criterion(key: str, op: str, value: float, unit: str) -> str:
    """'mean GPU utilization at least 86.7 %'; of a count that must be none, 'no repeated trials'."""
    if value == 0 and op == "<=" and unit == "1":
        return f"no {measured(key)}"
    return f"{measured(key)} {OPERATORS[op]} {quantity(value, unit, exact=True)}"
