"""What limited the run: one word where the data are clear, else the shares; and what would refute each."""

from __future__ import annotations

from gpudiag.facts import Fact
from gpudiag.measures.bottleneck import BottleneckProfile
from gpudiag.measures.loader import LoaderProfile
from gpudiag.measures.steps import StepsProfile
from gpudiag.report._render.blocks import Block, Heading, Note, Number, TableBlock
from gpudiag.report._sections.causes import waited
from gpudiag.report.document import Document, TopicValues
from gpudiag.report.format import named, share

QUESTION = "What limited it"
MOST_OF_A_STEP_PCT = 50.0
"""Share of a step's time from which on what it waits for is what limits it."""
MANY_PAUSES_PCT = 10.0
"""Share of the log from which on pauses are worth a sentence: the limit of check steps-paused."""
CLASSES = {
    "unused": ("unused GPU", "utilization never above 1 %", "MIG, or a column that is not filled"),
    "startup": ("start-up and ends of trials", "idle before the first or after the last work of a trial",
                "many trials at once: they hide each other"),
    "io_wait": ("waiting for storage", "below 10 % utilization beside I/O wait above 50 %",
                "another job on the same storage"),
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
    "small_work": ("too little work in a step", "GPU, CPU and memory below 70 % for 95 % of the time, steadily",
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
    if document.values(BottleneckProfile).get(BottleneckProfile.label):
        return bottleneck_sentence(document)
    return _paused(document)


def _paused(document: Document) -> str:
    """That most of what was lost was lost between steps, where a training log shows it."""
    steps = document.values(StepsProfile)
    idle, paused = steps.get(StepsProfile.idle_paused_pct), steps.get(StepsProfile.pauses_pct)
    if idle is None or paused is None or idle < MOST_OF_A_STEP_PCT or paused < MANY_PAUSES_PCT:
        return ""
    return (
        f"Pauses between training steps: by the training log they hold {share(idle)} of the time that the GPU waited."
    )


def bottleneck_sentence(document: Document) -> str:
    """What the samples' signatures come to, in one sentence; '' where it was not measured."""
    facts = document.values(BottleneckProfile)
    if not facts:
        return ""
    label = facts[BottleneckProfile.label]
    if label == "unused":
        return "No GPU was at work: utilization never rose above 1 %."
    held = sorted(_shares(facts), key=lambda pair: -pair[1])
    known = ", ".join(
        f"{share(value)} {CLASSES[name][0]}" for name, value in held if name not in ("undetermined", label)
    )
    unknown = dict(held).get("undetermined", 0.0)
    if label:
        rest = f"{share(unknown)} unknown{_why_unknown(facts)}" if unknown >= 0.1 else ""
        others = "; ".join(filter(None, (known, rest)))
        return f"{clear_limit(document)[1]}.{f' The rest: {others}.' if others else ''}"
    if unknown >= 50:
        rest = f" The rest was {known}." if known else ""
        return f"What limited {share(unknown)} of {_time(facts)} is unknown{_why_unknown(facts)}.{rest}"
    said = f"No single limit explains half of {_time(facts)}: {known}"
    return f"{said}. For {share(unknown)} it is unknown{_why_unknown(facts)}." if unknown >= 0.5 else f"{said}."


def clear_limit(document: Document) -> tuple[str, str]:
    """The class that is clear, and its share as a clause; '' where none is."""
    facts = document.values(BottleneckProfile)
    label = facts.get(BottleneckProfile.label) or ""
    return (label, f"{share(facts[SHARES[label]])} of {_time(facts)} was {CLASSES[label][0]}") if label else ("", "")


def bottleneck(document: Document) -> list[Block]:
    """The sentence, and every class that holds time."""
    facts = document.values(BottleneckProfile)
    if not facts:
        return []
    rows = tuple(
        (CLASSES[name][0], Number(share(value, exact=True)),
         Number(named("gpu_s", value / 100 * facts[BottleneckProfile.trial_gpu_s], exact=True)),
         CLASSES[name][1], CLASSES[name][2])
        for name, value in _shares(facts)
    )  # fmt: skip
    columns = ("Limit", "Share", "Time", "How it shows", "Not so if there was")
    of_trials = facts.get(BottleneckProfile.has_trials) is not False
    what = "Time of the trials" if of_trials else "Time from the first to the last activity"
    caption = f"{what}, each second in the first row that it fits; rows under 0.1 % are left out."
    said = limit(document) or bottleneck_sentence(document)
    return [Heading("What limited the GPU"), Note(said), TableBlock(columns, rows, caption)]


def _time(facts: TopicValues) -> str:
    """What the shares are of; without trials it is the GPUs' time from their first to their last activity."""
    return "the trial time" if facts.get(BottleneckProfile.has_trials) is not False else "the time at work"


def _why_unknown(facts: TopicValues) -> str:
    if facts[BottleneckProfile.has_host]:
        return ""
    return " (CPU per core and I/O wait not recorded)"


def _shares(facts: TopicValues) -> list[tuple[str, float]]:
    """(class, percent) of those that hold a tenth of a percent or more, in the order of the classes."""
    return [(name, facts[SHARES[name]]) for name in CLASSES if facts[SHARES[name]] >= 0.1]
