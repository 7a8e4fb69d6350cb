"""What a comparison says in a line and three sentences: what may be said, what else differs, what to do next."""

from __future__ import annotations

from typing import cast

from gpudiag.report.comparison.document import ComparisonDocument, ComparisonHeadline, GateCheckEntry, QuantityEntry
from gpudiag.report.format import gain, plural, precise, ratio, significance, times

QUESTIONS = ("What may be said", "What else differs", "What to do next")
LEVELS = {
    "faster": "ok",
    "slower": "warning",
    "fails more": "warning",
    "fails less": "ok",
    "costs more": "warning",
    "costs less": "note",
    "equivalent": "ok",
    "no evidence": "unknown",
    "invalid": "critical",
    "higher": "note",
    "lower": "note",
}
MEDIAN = "median of pairwise ratios"
"""What Hodges and Lehmann's estimate is called where there is little room."""
OUTCOME_LEVELS = {"came true": "ok", "missed": "warning", "cannot tell": "unknown"}
COUNTED = {"came true": "came true", "missed": "missed", "cannot tell": "cannot be told"}
STATE_WORK = (
    "Make sure that a step is the same work in both: state tokens_per_step under [training] of each run.toml, or log "
    "the global batch size."
)
BY_UNIT = {
    "time_per_item": "per configuration, COMPLETE or PRUNED",
    "time_per_complete": "per COMPLETE trial, which any pruner makes longer",
    "time_to_best": "to the same best value (one observation)",
}
"""Times of a search by the unit of its results."""
TOTALS = {
    "training_wall_time": "wall time",
    "training_gpu_time": "GPU time",
    "logged_whole_time": "time that the logs state",
}
"""What the whole of a training took: one observation a side."""
COSTS = ("costs more", "costs less")
PARTS = {
    "training_startup_time": ("start-up", "what makes the start longer, such as data, downloads or compilation"),
    "training_restart_time": ("restarts", "what ended the training, and mend it if it can come again"),
    "training_pause_time": ("pauses between steps", "what takes longer: evaluations, checkpoints or waits"),
    "training_untimed_time": ("time outside of its steps", "what takes longer: evaluations, checkpoints or waits"),
}
"""Parts of that time, in a few words, and what to look for where one has grown."""
MOSTLY = 0.5
"""Part of the difference from which on a part of the time is named as what it is of."""
UNKNOWN_WHOLE = "what the whole trainings took is not known"
GIVE_THE_WHOLE = (
    "Compare the whole trainings too before you decide: record the GPUs, with their memory, from before the start to "
    "behind the end."
)
ONCE = "One pair does not show whether it comes again: repeat both."
THROUGHPUT = "throughput"
OF_ITEMS = ("parameters-applied", "telemetry-covers-job", "warm-up")
"""Checks of the gate that look at nothing but trials or tasks, and settings of these."""
OF_RATES = "against time"
"""How the claim of a statement on rates ends: where the items are not the same work, that has been said."""
WORK_PER_ITEM = "GPU work per item"
"""A claim that where the runs prune apart says no more than that: a pruned trial is less work."""
OF_ALL_GPUS = ("gpu_time_per_item", "logged_gpu_time")
CHANCE = 0.05
"""Below this p a difference is said to be more than chance."""
JUDGE_A_PRUNER = (
    "Run both searches several times, with other seeds, and compare the time until they reach the same best value."
)
NO_MEASURE = (
    "The runs share neither COMPLETE items with times nor steps of a log with times, so nothing can be said about "
    "speed."
)
GIVE_A_MEASURE = (
    "Give each run what times its work: its study or table of trials, or a log of its training in which each line on a "
    "step has a timestamp."
)
TIME_STEPS = (
    "Repeat both in turns, or compare their steps: give the progress bars (stderr), or set "
    "include_num_input_tokens_seen=True, so that trainer_state.json has the time of each line."
)
"""For Hugging Face's Trainer, which states how long all of it took."""
AGAIN = "Repeat the experiment to see that what failed before stays mended."
NEXT = {
    "not-a-subset": "Run the same work alone in both, and compare the whole runs.",
    "both ran on one GPU at the same time": "Run one after the other, so that each has its GPU alone.",
    "same-unit": "Compare an amount of work that is the same in both, or state how much it is.",
    "parameters-applied": "Let the run log its effective parameters with each item, on the same hardware.",
    "other hardware": "Run both on the same hardware.",
    "same-workload": "Run the same items in both.",
    "warm-up": "Repeat both in turns (A, B, B, A).",
    "telemetry-covers-job": "Record telemetry from the start to the end of the job, and nothing else on that GPU.",
    "equal-success": "Mend what fails, or compare the items that succeed in both.",
    "only the baseline's items failed": AGAIN,
    "only the baseline's training ended with an error": AGAIN,
    "only one training came to its last step": "Let both run to their last step, or find what ended one before it.",
    "sample-size": "Let at least 6 items a side succeed, better 20.",
}


def headline(document: ComparisonDocument) -> ComparisonHeadline:
    """What the rest of the document comes to; its sentences answer QUESTIONS."""
    sentences = _what_may_be_said(document), _what_else(document), _what_next(document)
    return ComparisonHeadline(LEVELS[document.verdict], _verdict_line(document), sentences)


def _verdict_line(document: ComparisonDocument) -> str:
    a, b = document.baseline.name, document.experiment.name
    verdict = document.verdict
    if verdict == "invalid":
        failed = [c.fault for c in ordered_reasons(document)]
        return f"INVALID: {b} cannot be compared with {a} ({'; '.join(failed)})."
    held = leader(document)
    if verdict in ("fails more", "fails less"):
        item = "it" if _by_logs(document) else "an item"
        speed = f"; {item} takes {_ratio(held)} times the time ({_measure_of(held)})" if held is not None else ""
        return f"{verdict.upper()}: {_failing(document)}{speed}."
    if verdict in COSTS:
        return _costs(document)
    if held is None and (pruning := _pruning(document)):
        return f"NO EVIDENCE that {b} is faster or slower than {a}: {pruning}, so no time per item tells."
    if held is None:
        return f"NO EVIDENCE: {a} and {b} share no measure of speed."
    words = {
        "faster": f"FASTER: {b} is {_faster_by(held)} than {a}",
        "slower": f"SLOWER: {b} takes {_ratio(held)} times the time of {a}",
        "equivalent": f"EQUIVALENT: {b} takes {_ratio(held)} times the time of {a}, within 5 %",
        "no evidence": f"NO EVIDENCE that {b} is faster or slower than {a}: {_ratio(held)} times the time",
    }
    ends = [c.fault for c in document.gate if _by_logs(document) and c.check == "equal-success" and c.status == "fail"]
    ends += [UNKNOWN_WHOLE] if verdict == "equivalent" and _leaves_whole(document) else []
    return f"{'; '.join((f'{words[verdict]} ({_measure_of(held)})', *ends))}."


def _costs(document: ComparisonDocument) -> str:
    """What the whole training took for as many steps, of what that is, and beside it what was tested of the steps."""
    a, b = document.baseline.name, document.experiment.name
    taken = [f"{ratio(q.ratio)} times the {TOTALS[q.name]}" for q in totals(document)]
    part = _part(document)
    of_it = f" (mostly {PARTS[part.name][0]})" if part is not None else ""
    held = leader(document)
    counted = "epochs" if held is not None and "epoch" in held.title else "steps"
    whole = f"{document.verdict.upper()}: {b} needs {' and '.join(taken)} of {a} for as many {counted}{of_it}"
    if held is None or held.name in TOTALS:
        return f"{whole}."
    said = {
        "equivalent": "the time of each is equivalent",
        "no evidence": "whether each takes longer is not known",
    }
    return f"{whole}; {said.get(held.verdict, f'each is {held.verdict}')}: {_ratio(held)}."


def totals(document: ComparisonDocument) -> list[QuantityEntry]:
    return [q for q in document.quantities if q.name in TOTALS and q.ratio is not None]


def _beside_steps(document: ComparisonDocument) -> str:
    """The same behind other sentences, where the verdict is about the steps."""
    held = leader(document)
    told = document.verdict in COSTS or held is None or held.name in TOTALS
    return "" if told or not totals(document) else f" {_in_all(document)}"


def _leaves_whole(document: ComparisonDocument) -> bool:
    """Whether the verdict is about steps, and nothing is known of what came before them, or of all the rest."""
    return _by_logs(document) and not _is_whole(document)


def _is_whole(document: ComparisonDocument) -> bool:
    """Whether what the trainings took holds their start-up: by the GPUs, or as the logs state it."""
    return any(q.name != "training_wall_time" for q in totals(document))


def _part(document: ComparisonDocument) -> QuantityEntry | None:
    """The part of the wall time that most of its difference is of."""
    by_name = {q.name: q for q in document.quantities}
    grown = {name: _grown(by_name[name]) for name in ("training_wall_time", *PARTS) if name in by_name}
    if not (all_of_it := grown.pop("training_wall_time", 0.0)) or not grown:
        return None
    most = max(grown, key=lambda name: grown[name] / all_of_it)
    return by_name[most] if grown[most] / all_of_it >= MOSTLY else None


def _grown(q: QuantityEntry) -> float:
    return 0.0 if q.baseline is None or q.experiment is None else q.experiment - q.baseline


def _in_all(document: ComparisonDocument) -> str:
    """What the whole trainings took, as a sentence."""
    part = _part(document)
    said = [f"{TOTALS[q.name]} {both(q, ' against ')}" for q in totals(document)]
    said += [f"{PARTS[part.name][0]} {both(part, ' against ')}"] if part is not None else []
    of_it = "In all" if _is_whole(document) else "From the first line on steps to the last"
    return f"{of_it}: {', '.join(said)}; one observation a side." if said else ""


def _failing(document: ComparisonDocument) -> str:
    failures = next((q for q in document.quantities if q.name == "failures"), None)
    if failures is None:
        died, other = document.experiment.name, document.baseline.name
        if document.verdict == "fails less":
            return f"the training of {other} ended with an error, that of {died} did not"
        return f"the training of {died} ended with an error"
    a, b = (precise(value, failures.unit) for value in (failures.baseline, failures.experiment))
    return f"{b} of the items of {document.experiment.name} fail, {a} of those of {document.baseline.name}"


def _ratio(held: QuantityEntry) -> str:
    if held.ratio is None:
        return "an unknown number of"
    return ratio(held.ratio, held.low, held.high) + (" (no interval)" if held.low is None else "")


def _faster_by(held: QuantityEntry) -> str:
    """A ratio of times as a diagnosis says a gain: '1.3× faster (1.2–1.5×)'."""
    value, low, high = (1 / one if one else None for one in (held.ratio, held.high, held.low))
    return gain(value, low, high) + (" (no interval)" if low is None else "")


def applies(document: ComparisonDocument, check: GateCheckEntry) -> bool:
    """Whether a check can tell anything of these runs: most rest on items, which two trainings do not have."""
    return not (check.status == "unknown" and check.check in OF_ITEMS and _has_no_items(document))


def _has_no_items(document: ComparisonDocument) -> bool:
    return _by_logs(document) and not document.baseline.n_items and not document.experiment.n_items


def both(q: QuantityEntry, between: str) -> str:
    return between.join(precise(value, q.unit) for value in (q.baseline, q.experiment))


def _measure_of(held: QuantityEntry) -> str:
    title = held.title
    measure = title if title[:2].isupper() else title[0].lower() + title[1:]
    return f"{measure}; ratio: {MEDIAN}" if is_median(held) else measure


def is_median(held: QuantityEntry) -> bool:
    """Whether the ratio is a median of pairwise ratios, not that of the two means beside it."""
    return held.method.startswith("Hodges-Lehmann")


def _what_may_be_said(document: ComparisonDocument) -> str:
    if document.verdict == "invalid":
        return " ".join(c.evidence for c in ordered_reasons(document)[:2])
    held = leader(document)
    if held is None and _pruning(document):
        return f"{_by_each_time(document)}{_doubt(document)}"
    if held is None:
        why = "".join(f" {c.evidence}" for c in document.gate if c.check == "same-unit" and c.status == "unknown")
        return f"{NO_MEASURE}{why}"
    numbers = both(held, " against ")
    why = f" {held.note}" if held.note and held.verdict == "no evidence" and not _by_logs(document) else ""
    each = f" {_by_each_time(document)}" if _prunes_apart(document) else ""
    whole = f"{_in_all(document)} " if document.verdict in COSTS else ""
    return f"{whole}{held.title}: {numbers}, {held.method}.{why}{_power(held)}{each}{_doubt(document)}"


def _pruning(document: ComparisonDocument) -> str:
    """Which parts the runs prune, where both were timed per item; '' where neither prunes."""
    by_name = {q.name: q for q in document.quantities}
    share = by_name.get("pruning")
    if share is None or "time_per_complete" not in by_name:
        return ""
    a, b = (precise(value, share.unit) for value in (share.baseline, share.experiment))
    return f"{document.experiment.name} prunes {b} of its trials and {document.baseline.name} {a}"


def _prunes_apart(document: ComparisonDocument) -> bool:
    """Whether the runs prune so unlike that a time per item is a price of its kind of result, and no speed."""
    return any(q.name == "time_per_complete" and q.kind == "price" for q in document.quantities)


def _by_each_time(document: ComparisonDocument) -> str:
    """The ratio by each unit of result that two searches which prune apart may be judged by."""
    by_name = {q.name: q for q in document.quantities}
    held = [f"{ratio(q.ratio, q.low, q.high)} {BY_UNIT[name]}" for name in BY_UNIT if (q := by_name.get(name))]
    return f"Times the time: {'; '.join(held)}. A pruner that stops good trials is no gain, whatever these say."


def _doubt(document: ComparisonDocument) -> str:
    """Which checks did not pass."""
    checks = [c for c in document.gate if applies(document, c)]
    doubts = [
        f"{word}: {'; '.join(c.title.lower() for c in checks if c.status == status)}"
        for status, word in (("fail", "Failed"), ("unknown", "Not known"), ("error", "Ended in an ERROR of gpudiag"))
        if any(c.status == status for c in checks)
    ]
    return "".join(f" {one}." for one in doubts) or (
        " All eight checks passed." if len(checks) == len(document.gate) else " All checks that apply passed."
    )


def _power(held: QuantityEntry) -> str:
    """What a pair of this size can show at all, so that finding no difference is not taken for there being none."""
    if held.detectable is None or round(held.detectable, 2) == 1:  # "1.00 times or more" would say nothing
        return ""
    missed = "; a smaller one may be missed" if held.verdict == "no evidence" else ""
    return (
        f" 4 of 5 pairs of this size would show a difference of {times(held.detectable, exact=True)} or more{missed}."
    )


def _what_else(document: ComparisonDocument) -> str:
    told = "same-unit" in document.reasons
    odd = [
        one.text
        for one in document.consistency
        if one.status == "inconsistent"
        and not (told and one.claim.endswith(OF_RATES))
        and not (_prunes_apart(document) and one.claim == WORK_PER_ITEM)
    ]
    if document.verdict == "invalid":
        odd = [text for text in odd if "at face value" not in text]
    if document.verdict == "invalid":
        return " ".join(odd[:2]) or "No ratio below is a result, whatever it is."
    by_speed = [
        f"{q.verdict.capitalize()} by {_measure_of(q)}: {_ratio(q)} times ({both(q, ' to ')})"
        for q in _faster(document)
    ]
    if odd:
        return f"{' '.join([*(f'{line}.' for line in by_speed), *odd[:2]])}{_gpus(document)}"
    moved = [f"{q.title} is {q.verdict} ({both(q, ' to ')})" for q in document.quantities if _is_level(document, q)]
    alone, whole = _by_itself(document), f"{_beside_steps(document)}{_gpus(document)}{_limits(document)}"
    if said := [*by_speed, *moved][:3]:
        return f"{'; '.join(said)}.{alone}{whole}"
    tested = [q for q in document.quantities if q.p is not None]
    if not tested:
        return f"Nothing could be tested: the runs have too little in common.{whole}"
    others = sum(q.name != document.leader for q in tested)
    if not others:
        return f"No other quantity could be tested.{whole}"
    number = plural(others, "other quantity that was", "other quantities that were")
    return f"No difference shows in {number} tested{', all together' if alone else ''}.{alone}{whole}"


def _gpus(document: ComparisonDocument) -> str:
    """That the numbers of GPUs differ, which no time by the wall takes into account, and the time that does."""
    a, b = document.baseline.n_gpus, document.experiment.n_gpus
    if a == b or not (a and b):
        return ""
    time = next((q for q in document.quantities if q.name in OF_ALL_GPUS and q.ratio is not None), None)
    paid = f"; {time.title}: {both(time, ' to ')}, {_ratio(time)} times" if time is not None else ""
    return f" GPUs recorded: {a} and {b}{paid}."


def _limits(document: ComparisonDocument) -> str:
    """That the power limits differ, whose effect nothing above tells from that of another change."""
    limits = next((one for one in document.differences if one.name == "power_limit_w"), None)
    if limits is None or not all(isinstance(one, float) for one in (limits.baseline, limits.experiment)):
        return ""
    a, b = (precise(cast(float, one), "W") for one in (limits.baseline, limits.experiment))
    return f" The power limit went from {a} to {b}, and its effect is in every ratio."


def _is_level(document: ComparisonDocument, q: QuantityEntry) -> bool:
    """Whether a quantity that is no time of the work is higher or lower in one run."""
    told = OF_ALL_GPUS if _gpus(document) else ()
    return q.verdict in ("higher", "lower") and q.name not in (document.leader, THROUGHPUT, *BY_UNIT, *told)


def _faster(document: ComparisonDocument) -> list[QuantityEntry]:
    """The other measures of speed that differ, each of which may be what counts; a time an item is the throughput
    upside down.
    """
    named = [q for q in document.quantities if q.verdict in ("faster", "slower") and q.name != document.leader]
    if document.leader == "time_per_item" or any(q.name == THROUGHPUT for q in named):
        named = [q for q in named if q.name != "time_per_item"]
    if document.leader == "time_per_item":
        named = [q for q in named if q.name != THROUGHPUT]
    return sorted(named, key=lambda q: q.name != THROUGHPUT)


def _by_itself(document: ComparisonDocument) -> str:
    """What would be a difference if it alone had been tested, and is none among so many tests."""
    told = {document.leader} | ({THROUGHPUT, *BY_UNIT} if _pruning(document) else set())
    near = [q for q in document.quantities if q.verdict == "no evidence" and q.name not in told and _alone(q)]
    said = "; ".join(f"{q.title} ({both(q, ' to ')}, {significance(q.p)})" for q in near[:2])
    return f" A difference by itself, but not among so many tests: {said}." if near else ""


def _alone(q: QuantityEntry) -> bool:
    return q.p is not None and q.p < CHANCE and q.p_adjusted is not None and q.p_adjusted >= CHANCE


def _what_next(document: ComparisonDocument) -> str:
    failed, verdict = ordered_reasons(document), document.verdict
    counted = plan_counts(document)
    plan = f" The plan: {counted}." if counted else ""
    if verdict == "fails more":
        return f"Take the change back, or mend what fails: a failed item is no result.{plan}"
    if verdict == "fails less":
        return f"Keep the change: a failed item is no result.{plan}"
    if verdict in COSTS and document.leader not in TOTALS:
        return f"{_after_costs(document)} {ONCE}{plan}"
    if failed:
        return f"{NEXT.get(failed[0].fault) or NEXT[failed[0].check]}{plan}"
    unit = next((check for check in document.gate if check.check == "same-unit"), None)
    if verdict in ("faster", "slower") and _by_logs(document) and unit and unit.status == "unknown":
        return f"{STATE_WORK}{plan}"
    if verdict == "no evidence" and document.leader is None:
        return f"{JUDGE_A_PRUNER if _pruning(document) else GIVE_A_MEASURE}{plan}"
    if verdict in ("no evidence", "equivalent") and _prunes_apart(document):
        return f"{JUDGE_A_PRUNER}{plan}"
    if document.leader == "logged_whole_time":
        return f"{TIME_STEPS}{plan}"
    if verdict == "equivalent" and _leaves_whole(document):
        return f"{GIVE_THE_WHOLE}{plan}"
    words = {
        "faster": "Keep the change, and repeat both once in the other order to rule out a cache.",
        "slower": "Take the change back, or find what else differs.",
        "equivalent": "Decide by something else than speed.",
        "no evidence": "Run more items if a difference of this size would matter.",
    }
    return f"{words[verdict]}{plan}"


def _after_costs(document: ComparisonDocument) -> str:
    part = _part(document)
    if document.verdict == "costs less":
        return f"Keep the change if it is what saved {PARTS[part.name][0] if part is not None else 'the time'}."
    if part is not None:
        return f"Find {PARTS[part.name][1]}."
    held = leader(document)
    alike = held is not None and held.verdict == "equivalent"
    return f"Find what takes longer{' outside of the steps' if alike else ', in the steps or outside of them'}."


def _by_logs(document: ComparisonDocument) -> bool:
    """Whether the verdict is about the steps of two trainings, as their logs tell of them."""
    return (document.leader or "").startswith("logged_")


def plan_counts(document: ComparisonDocument) -> str:
    """How the predictions of the plan came out, as ``gpudiag plans`` counts them, and its checks; '' without any."""
    said = []
    for noun, kinds in (("prediction", ("prediction", "gain")), ("check", ("check",))):
        statuses = [one.status for one in document.plan if one.kind in kinds]
        if statuses:
            counts = ", ".join(f"{statuses.count(word)} {COUNTED[word]}" for word in COUNTED if word in statuses)
            said.append(f"of {plural(len(statuses), noun)} {counts}")
    return "; ".join(said)


def leader(document: ComparisonDocument) -> QuantityEntry | None:
    return next((q for q in document.quantities if q.name == document.leader), None)


def ordered_reasons(document: ComparisonDocument) -> list[GateCheckEntry]:
    by_id: dict[str, GateCheckEntry] = {check.check: check for check in document.gate}
    return [by_id[name] for name in document.reasons]
