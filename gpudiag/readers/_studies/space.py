"""The space that a study searches, as its parameters' distributions declare it."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd

from gpudiag.readers._io.surrogates import without_halves
from gpudiag.readers._studies.distributions import parse_distribution
from gpudiag.readers._studies.pivot import coded


def declared_space(params: pd.DataFrame, trials: pd.DataFrame) -> dict[Any, str]:
    """JSON text of each study's space by study_id: by parameter ``low``, ``high``, ``step`` (null if
    continuous) and ``log``, or ``choices``.

    ``params`` has ``row``, the place of its trial in ``trials``. Distributions of one parameter that differ from trial
    to trial are taken together. A parameter whose distribution is damaged, or is now of numbers and now of choices,
    is left out.
    """
    study, studies = pd.factorize(trials["study_id"])
    name, names = coded(params["name"])
    text, texts = coded(params["distribution"])
    code = study[params["row"]]
    for more, found in ((name, names), (text, texts)):
        code *= len(found)
        code += more
    distinct = pd.unique(code[(name >= 0) & (text >= 0)])
    spaces: dict[Any, dict[str, dict[str, Any] | None]] = {}
    for code in distinct.tolist():
        rest, of_text = divmod(code, len(texts))
        of_study, of_name = divmod(rest, len(names))
        space = spaces.setdefault(studies[of_study], {})
        one, called = _domain(str(texts[of_text])), str(names[of_name])
        space[called] = _together(space[called], one) if called in space else one
    return {
        key: json.dumps({name: space[name] for name in sorted(space) if space[name] is not None})
        for key, space in spaces.items()
    }


def _domain(text: str) -> dict[str, Any] | None:
    known = parse_distribution(text)
    if known is None:
        return None
    if known.kind == "choice":
        return {"choices": [choice if isinstance(choice, str) else json.dumps(choice) for choice in known.choices]}
    stored = json.loads(without_halves(text))
    held = stored.get("attributes", stored)
    low, high = held.get("low"), held.get("high")
    if not all(isinstance(end, int | float) for end in (low, high)):
        return None
    step = held.get("step", held.get("q", 1 if known.kind == "int" else None))
    log = bool(held.get("log")) or "Log" in str(stored.get("name"))
    return {"low": low, "high": high, "step": step if isinstance(step, int | float) else None, "log": log}


def _together(a: dict[str, Any] | None, b: dict[str, Any] | None) -> dict[str, Any] | None:
    if a is None or b is None or ("choices" in a) != ("choices" in b):
        return None
    if "choices" in a:
        return {"choices": list(dict.fromkeys((*a["choices"], *b["choices"])))}
    step = a["step"] if a["step"] == b["step"] else None
    return {
        "low": min(a["low"], b["low"]), "high": max(a["high"], b["high"]), "step": step, "log": a["log"] and b["log"],
    }  # fmt: skip
