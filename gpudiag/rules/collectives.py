"""In which collective does the training hang, and because of which rank?"""

from __future__ import annotations

import math
from datetime import datetime

from gpudiag.errors import NotGiven, NotMeasurable
from gpudiag.measures.collectives import DUMP, CollectivesProfile, measure_collectives
from gpudiag.rules._engine.evidence import Evidence
from gpudiag.rules._engine.rule import rule
from gpudiag.rules._engine.templates import Given, template
from gpudiag.rules._engine.verdict import Severity
from gpudiag.values import Value

SINCE = (Given("known_since", " since {known_since} UTC"), Given("is_sure", ", for {wait_s}", ", for up to {wait_s}"))
AGAIN = "Not a problem if a second dump, a minute later, shows a higher number: then the training goes on."
DOUBT = (
    "{n_waiting:as count} of {n_ranks:rank} ",
    Given("several_wait", "wait", "waits"),
    " in {collective} of group {group}",
    SINCE,
    ", but ",
    Given("undumped", "there is no dump of ", "no dump says how far others came: "),
    Given("several_unknown", "ranks {unknown}.", "rank {unknown}."),
)
FETCH = (
    Given("undumped", "Fetch the dump of ", "Give a whole dump of "),
    Given("several_unknown", "each of ranks {unknown}", "rank {unknown}"),
    Given("undumped", " too"),
    ", written at the same time as the others; if it wrote none, see the end of its log.",
)
GAVE_UP = (
    "PyTorch's watchdog gave up {collective} after {wait_s} on ",
    Given("several", "ranks {waiting}: they", "rank {waiting}: it"),
    " waited",
    Given("after_error", ". The log tells of another error before it.", ", and the log does not say for which rank."),
)
MIN_WAIT_S = 60.0
SURE = 0.9
"""Share of the longest possible wait from which on it is known."""


def _hang(found: CollectivesProfile, kind: str, min_wait_s: float) -> Evidence | None:
    """Evidence of such a hang. Raises NotMeasurable where an unknown rank may be the cause, or times are unknown."""
    if not found.n_dumps and not found.missing_ranks:
        raise _gave_up(found)
    if found.hang == "open" and found.wait_s > min_wait_s:
        raise _undecided(found)
    if found.hang in (kind, "open") and math.isnan(found.wait_s):
        raise NotMeasurable(
            "Ranks wait in {collective}, but since when is not known.", DUMP, collective=found.collective
        )
    if not found.hang and found.sends_ranks and not found.send_wait_s <= min_wait_s:
        raise NotMeasurable(
            "In a send or a receive wait, by rank, {waiting}, which is not followed.",
            "See where both ends of it are: py-spy dump on their processes.",
            waiting=_each(found.sends_ranks),
        )
    if found.hang != kind or not found.wait_s > min_wait_s:
        return None
    extra: dict[str, Value] = {
        **_wait(found),
        "missing": _each(found.missing_ranks),
        "waiting": _each(found.waiting_ranks),
        "several_missing": found.n_missing > 1,
        "elsewhere": found.elsewhere,
        "all_wait": found.n_waiting == found.n_ranks,
        "ranks_stated": found.ranks_stated,
    }
    where = {"collective": found.collective, "group": found.group, "waiting_ranks": found.waiting_ranks}
    if kind == "missing":
        where |= {"missing_ranks": found.missing_ranks}
        where |= {"last_collective": found.last_collective} if found.last_collective else {}
    return Evidence(
        values={"wait_s": found.wait_s, "n_waiting": found.n_waiting, "n_ranks": found.n_ranks},
        where=where,
        margin=found.wait_s - min_wait_s,
        severity=None if found.wait_low_s > min_wait_s else Severity.WARNING,  # the file may be copied long after
        extra=extra,
    )


def _undecided(found: CollectivesProfile) -> NotMeasurable:
    """Who waits, and which ranks' dumps are needed to know for whom."""
    values: dict[str, Value] = {
        **_wait(found),
        "collective": found.collective,
        "group": found.group,
        "n_waiting": found.n_waiting,
        "n_ranks": found.n_ranks,
        "wait_s": found.wait_s,
        "unknown": _each(found.unknown_ranks),
        "several_unknown": _are_several(found.unknown_ranks),
        "undumped": found.undumped_ranks == found.unknown_ranks,
    }
    return NotMeasurable(template(DOUBT, values), template(FETCH, values), **values)


def _gave_up(found: CollectivesProfile) -> NotMeasurable:
    """Who waited until the watchdog ended the training, by its log alone."""
    values: dict[str, Value] = {
        "collective": found.collective,
        "waiting": _each(found.waiting_ranks),
        "several": _are_several(found.waiting_ranks),
        "wait_s": found.wait_s,
        "after_error": found.after_error,
    }
    return NotMeasurable(
        template(GAVE_UP, values), f"To name the rank that did not come: {DUMP[:1].lower()}{DUMP[1:]}", **values
    )


def _wait(found: CollectivesProfile) -> dict[str, Value]:
    """What the words on a wait depend on."""
    return {
        "several_wait": found.n_waiting > 1,
        "known_since": datetime.fromisoformat(found.waiting_since) if found.waiting_since else None,
        "is_sure": found.wait_low_s >= SURE * found.wait_s,
    }


@rule(
    measure=measure_collectives,
    severity="critical",
    title="A rank did not come to a collective",
    checks="Ranks in collectives",
    says=(
        Given("several_missing", "Ranks {missing}", "Rank {missing}"),
        " never came to {collective}",
        Given("group", " of group {group}"),
        "; ",
        Given("several_wait", "ranks {waiting} have", "rank {waiting} has"),
        " waited for it",
        SINCE,
        Given("elsewhere", ", though one that did not come waits itself"),
        ".",
    ),
    remedy="Find out what that rank did: py-spy dump on its process, the end of its log, and whether ranks may take "
    "different branches or have different numbers of batches.",
    refuted_by=AGAIN,
    explained_by=("collective-mismatch",),
)
def rank_missing(found: CollectivesProfile, *, min_wait_s: float = MIN_WAIT_S) -> Evidence | None:
    """A collective ends when all ranks have joined it: one that does not come stops all, until the timeout ends them.

    Above 60 s (a default without a published source: PyTorch ends a collective of NCCL after 10 min). A rank without
    a dump is not known to be missing. Without dumps it is known where PyTorch printed the last collective of a rank as
    others gave up (since 2.5). Where only the time of the files tells so, it is a warning: they may be copies.
    """
    return _hang(found, "missing", min_wait_s)


@rule(
    measure=measure_collectives,
    severity="critical",
    title="A collective does not end though all ranks came",
    checks="Collectives that end",
    says=(
        Given("all_wait", "All {n_ranks:rank}", "All ranks"),
        Given("ranks_stated", " came", " with a dump came"),
        " to {collective} of group {group}, and it has not ended on ",
        Given("all_wait", "any", Given("several_wait", "ranks {waiting}", "rank {waiting}")),
        SINCE,
        ".",
    ),
    remedy="Look at the network and the GPUs: NCCL_DEBUG=INFO, nvidia-smi nvlink -s, Xid errors in dmesg, and "
    "nccl-tests on the same hosts.",
    refuted_by=AGAIN,
    explained_by=("collective-mismatch",),
)
def collective_stuck(found: CollectivesProfile, *, min_wait_s: float = MIN_WAIT_S) -> Evidence | None:
    """Once all ranks are in a collective, only the network and the GPUs are left to move the data.

    Above 60 s (a default without a published source: PyTorch ends a collective of NCCL after 10 min).
    """
    return _hang(found, "stuck", min_wait_s)


@rule(
    measure=measure_collectives,
    severity="critical",
    title="Ranks called different collectives",
    checks="Collectives alike on all ranks",
    says=(
        "At number {mismatch} of group {mismatch_group} ",
        Given("several_others", "ranks {others}", "rank {others}"),
        " called {other_call}, where ",
        Given("tied", "others", "most"),
        " called {usual_call}",
        Given("swapped", ": the two are swapped"),
        ".",
    ),
    remedy="Make all ranks call the same collectives in the same order, with tensors of the same size. Look for one "
    "within 'if rank == 0', or in the order of a set.",
    refuted_by="Not a problem if the dumps are of two different runs.",
)
def collective_mismatch(found: CollectivesProfile) -> Evidence | None:
    """NCCL matches collectives by their order alone: where ranks call different ones, it hangs or mixes up the data.

    Elements and types are compared where all ranks must agree on them, as in all_reduce (a default without a published
    source: PyTorch's fr_trace compares their shapes too).
    """
    if not found.n_dumps:
        raise NotGiven("The run has no dump of a flight recorder.", DUMP)
    if not found.mismatch:
        if found.n_unseen > 0:
            raise NotMeasurable("The dumps do not show what {n:rank} called.", DUMP, n=found.n_unseen)
        return None
    return Evidence(
        values={"n_dumps": found.n_dumps},
        where={"other_ranks": found.other_ranks, "usual_call": found.usual_call, "other_call": found.other_call},
        extra={
            "mismatch": found.mismatch,
            "mismatch_group": found.mismatch_group,
            "others": _each(found.other_ranks),
            "several_others": _are_several(found.other_ranks),
            "tied": found.tied,
            "swapped": found.swapped,
        },
    )


def _each(ranks: str) -> list[str]:
    return ranks.split(", ")


def _are_several(ranks: str) -> bool:
    return len(_each(ranks)) > 1 or "-" in ranks
