"""What limited the run, in a sentence where the data are clear; and what limited a busy GPU."""

from __future__ import annotations

from gpudiag.facts import Fact
from gpudiag.measures.bottleneck import BottleneckProfile
from gpudiag.measures.loader import LoaderProfile
from gpudiag.report._render.blocks import Block, Heading, Number, TableBlock
from gpudiag.report._sections.causes import waited
from gpudiag.report.document import Document, TopicValues
from gpudiag.report.format import quantity, share

MOST_OF_A_STEP_PCT = 50.0
"""Share of a step's time from which on what it waits for is what limits it."""
BUSY = ("limited", "bandwidth_bound", "compute_bound", "light", "busy")
"""Classes of a GPU that works. What an idle one waits for, the table of causes says."""
LEAST_PCT = 1.0
CLASSES = {
    "unused": ("unused GPU", "utilization never above 1 %", "MIG, or a column that is not filled"),
    "startup": ("start-up and ends of trials", "idle before the first or after the last work of a trial",
                "many trials at once: they hide each other"),
    "io_wait": ("beside I/O wait on the host",
                "below 10 % utilization beside I/O wait above 50 %, or below 50 % beside a core's",
                "I/O wait of another job"),
    "cpu_bound": ("bound by the CPU", "below 50 % utilization beside a core or process above 90 %",
                  "a hot core that does something else"),
    "launch_bound": ("bound by one thread that launches kernels",
                     "50 to 90 % utilization with little power beside a core above 90 %",
                     "CUDA graphs or a larger batch that change nothing"),
    "limited": ("held back by power or heat", "busy, power or thermal bits set, clock below 80 % of its highest",
                "the same speed at full clocks"),
    "bandwidth_bound": ("bound by memory bandwidth",
                        "90 % utilization or more, memory busy 60 % or more, 40 to 80 % of the power range",
                        "a smaller data type that is no faster"),
    "compute_bound": ("bound by computing",
                      "90 % utilization or more at 70 % of the power range or more, or SM activity of 80 % or more",
                      "a profile of one step that shows waits"),
    "light": ("busy with light kernels",
              "90 % utilization or more at less than 35 % of the power range, or SM activity below 50 %",
              "work that is bound by memory bandwidth by nature"),
    "busy": ("busy (the record does not show with what)", "90 % utilization or more",
             "SM activity or power of each sample"),
    "small_work": ("too little work, or a wait that keeps no core busy",
                   "GPU, CPU and memory below 70 % for 95 % of the time, steadily",
                   "twice the batch at the same samples per second"),
    "stalled": ("pauses in the work", "below 10 % utilization on a GPU that reaches 70 % and more",
                "validation or checkpoints at the same times"),
    "undetermined": ("cause unknown", "none of these", "CPU by core, I/O wait and power of each sample"),
}  # fmt: skip
"""By class of the profile: its name, its signature and what would refute it."""
SHARES: dict[str, Fact[float]] = {name: BottleneckProfile.facts()[f"{name}_pct"] for name in CLASSES}


def limit(document: Document) -> str:
    """What limited the run, where there is an answer: the log's own, else the class that holds most time; else ''."""
    if said := waited(document):
        return said
    waits = document.values(LoaderProfile).get(LoaderProfile.of_step_pct)
    if waits is not None and waits >= MOST_OF_A_STEP_PCT:
        return (
            f"The data loader: by the training log a step spends {share(min(waits, 100))} of its time waiting for it."
        )
    label, said = clear_limit(document)
    if label == "unused":
        return "No GPU was at work: utilization never rose above 1 %."
    return f"{said}." if said else ""


def clear_limit(document: Document) -> tuple[str, str]:
    """The class that is clear, and its share as a clause; '' where none is."""
    facts = document.values(BottleneckProfile)
    label = facts.get(BottleneckProfile.label) or ""
    return (label, f"{share(facts[SHARES[label]])} of {_time(facts)} was {CLASSES[label][0]}") if label else ("", "")


def bottleneck(document: Document) -> list[Block]:
    """What limited a busy GPU; nothing where the record does not show more than that it was busy."""
    facts = document.values(BottleneckProfile)
    held = {name: facts[SHARES[name]] for name in BUSY} if facts else {}
    if not any(value >= LEAST_PCT for name, value in held.items() if name != "busy"):
        return []
    rows = tuple(
        (CLASSES[name][0], Number(share(value, exact=True)),
         Number(quantity(value / 100 * facts[BottleneckProfile.trial_gpu_s], "GPU-s")),
         CLASSES[name][1], CLASSES[name][2])
        for name, value in held.items() if value >= LEAST_PCT
    )  # fmt: skip
    columns = ("Limit of a busy GPU", "Share", "Time", "How it shows", "Not so if there was")
    caption = f"Shares of {_time(facts)}, each second in the first row that it fits."
    return [Heading("What limited it while it was busy"), TableBlock(columns, rows, caption)]


def _time(facts: TopicValues) -> str:
    """What the shares are of; without trials it is the GPUs' time from their first to their last activity."""
    return "the trial time" if facts.get(BottleneckProfile.has_trials) is not False else "the time at work"
