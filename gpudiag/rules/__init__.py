"""Functions from one profile to one verdict. One topic a file, the same names as in measures/.

``RULES`` holds every rule of ``TOPICS`` in written order. A user's own rules go beside them:
``diagnose(run, rules=(*RULES, my_rule))``.
"""

from __future__ import annotations

from gpudiag.rules import memory, parallelism, power, pruning, sampling, trials, utilization
from gpudiag.rules.engine import Rule

TOPICS = (utilization, memory, power, parallelism, trials, pruning, sampling)

RULES: tuple[Rule, ...] = tuple(r for topic in TOPICS for r in vars(topic).values() if isinstance(r, Rule))


def catalogue() -> list[Rule]:
    """Every rule that comes with gpudiag, in the order of the report."""
    return list(RULES)
