"""Remedies for a training that hangs in a collective."""

from __future__ import annotations

from gpudiag.advice._engine.proposal import Change, Proposal, SuccessCheck
from gpudiag.advice._engine.remedy import remedy
from gpudiag.advice._engine.situation import Situation
from gpudiag.measures.collectives import CollectivesProfile
from gpudiag.rules.collectives import MIN_WAIT_S


@remedy(
    title="Look at the missing rank: py-spy dump --pid PID, its log",
    answers=("rank-missing",),
    tier=0,
    effort="minutes",
    pros=("changes nothing",),
    cons=("only finds the cause",),
    refute="The stack of that rank is in the same collective as the others'.",
    rollback="Nothing to undo.",
)
def see_missing_rank(now: Situation) -> Proposal | None:
    """Its stack says whether it loads data, saves, waits in another collective, or has died."""
    code = "py-spy dump --pid PID                # of the process of that rank, while the others wait"
    return _proposal(Change("process of the missing rank", None, "looked at", code), "The others only wait for it.")


@remedy(
    title="Give all ranks as many batches",
    answers=("rank-missing",),
    tier=1,
    effort="minutes",
    apply="next study",
    pros=("no rank ends an epoch before the others",),
    cons=("a few samples of each epoch are left out",),
    refute="If the stack of the missing rank is not at the end of its data, the cause is another.",
    rollback="Restore the sampler.",
)
def even_batches(now: Situation) -> Proposal | None:
    """A rank with fewer batches leaves the loop, and the others wait for it in the next exchange of gradients."""
    if not now.torch:
        return None
    code = (
        "sampler = torch.utils.data.DistributedSampler(data, drop_last=True)\n"
        "DataLoader(data, sampler=sampler, drop_last=True)"
    )
    return _proposal(Change("batches of a rank", None, "as many on each", code), "A rank may have had fewer batches.")


@remedy(
    title="Let PyTorch compare the collectives",
    answers=("collective-mismatch",),
    tier=0,
    effort="minutes",
    pros=("the first call that differs raises an error with its stack",),
    cons=("each collective takes longer: for a short run only",),
    refute="No error is raised where the ranks differed.",
    rollback="Unset the variable.",
)
def compare_collectives(now: Situation) -> Proposal | None:
    """With TORCH_DISTRIBUTED_DEBUG=DETAIL each collective is compared between ranks before it runs."""
    if not now.torch:
        return None
    code = "TORCH_DISTRIBUTED_DEBUG=DETAIL torchrun ..."
    return _proposal(
        Change("collectives", None, "compared before they run", code), "The ranks take different branches."
    )


@remedy(
    title="Test the network and the GPUs without the training",
    answers=("collective-stuck",),
    tier=0,
    effort="an hour",
    pros=("tells the hosts and links from the program",),
    cons=("needs the same hosts for a few minutes",),
    refute="The same test ends, and at the usual speed.",
    rollback="Nothing to undo.",
)
def check_links(now: Situation) -> Proposal | None:
    """An all_reduce of nothing but NCCL hangs too where a link, a network card or a GPU is at fault."""
    code = (
        "NCCL_DEBUG=INFO mpirun -np RANKS ./build/all_reduce_perf -b 8 -e 1G -f 2   # nccl-tests, on the same hosts\n"
        "nvidia-smi nvlink --errorcounters; dmesg | grep -i xid"
    )
    return _proposal(
        Change("network and GPUs", None, "tested alone", code), "The program called the same on all ranks."
    )


def _proposal(change: Change, assumption: str) -> Proposal:
    return Proposal((change,), None, assumption, (SuccessCheck.of(CollectivesProfile.wait_s, "<", MIN_WAIT_S),))
