"""What to do: the options by safety, and each recommendation with the lines that make the change."""

from __future__ import annotations

from typing import Any

from gpudiag.report.blocks import Block, Cell, Named, Note, Number, Remedy, Table
from gpudiag.report.document import Document
from gpudiag.report.format import UNKNOWN, hours, label, number, quantity

NOTHING = "Nothing needs to be changed: no finding asks for it, and no idle time is worth filling."
RESOURCES = (
    ("memory of the fullest GPU", "max_used_pct"),
    ("mean utilization", "utilization.mean_pct"),
    ("median trial time", ".median_s"),
)


def advice(document: Document) -> list[Block]:
    """The plan in a sentence, what the numbers refute, the options by safety, and the cards, best first."""
    given = document["recommendations"]
    if not given:
        return [Note(NOTHING, "clear" if document["verdicts"] else "")]
    remedies = [one for one in given if "tier" in one]
    blocks: list[Block] = [
        Note(text) for text in (_plan(document["advice"]), *document["advice"]["corrections"]) if text
    ]
    if remedies:
        blocks.append(_options(remedies))
    blocks += [_card(one) for one in remedies]
    return [*blocks, *(_plain(one) for one in given if "tier" not in one)]


def _plan(entry: dict[str, Any]) -> str:
    combined = entry["combined"]
    if not entry["plan"] or combined is None:
        return ""
    ids = ", ".join(f"`{name}`" for name in entry["plan"])
    clipped = f", clipped at 1/u = x{entry['ceiling']:.2f}" if combined["clipped"] else ""
    saved = f" Up to {hours(entry['saved_gpu_h'])} of this run need not be spent again." if entry["saved_gpu_h"] else ""
    together = gain(combined) if gain(combined) == "no speed-up" else f"between {gain(combined)}"
    return (
        f"The plan: {ids}. Together they bring {together}{clipped}, as far as the ledger of this run can tell.{saved}"
    )


def gain(interval: dict[str, Any] | None) -> str:
    """'x1.00 and x1.19', '0 and 0.13 GPU-h'; a dash where nobody can tell."""
    if interval is None:
        return UNKNOWN
    if interval["unit"] == "x" and interval["low"] == interval["high"] == 1:
        return "no speed-up"
    if interval["unit"] == "x":
        return f"x{interval['low']:.2f} and x{interval['high']:.2f}"
    return f"{hours(interval['low'])} and {hours(interval['high'])}"


def _options(remedies: list[dict[str, Any]]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            Named(one["title"], one["id"]),
            f"{one['safety']} (tier {one['tier']}){', verify first' if one['verify_first'] else ''}",
            _change(one["changes"][0]),
            Number(gain(one["gain"]).replace(" and ", " – ")),
        )
        for one in sorted(remedies, key=lambda one: one["tier"])
    ]
    caption = (
        "Options, the safest first; the gain is at least to at most, a dash where nobody can tell. The card of each "
        "says what is predicted, what it assumes and how to take it back."
    )
    return Table(("Option", "Safety", "Change", "Gain"), tuple(rows), caption)


def _change(change: dict[str, Any]) -> str:
    present = "not stated" if change["present"] is None else _value(change["present"])
    return f"{change['what']}: {present} → {_value(change['proposed'])}"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value)
    return number(value) if isinstance(value, int | float) else str(value)


def _predicted(one: dict[str, Any]) -> str:
    known = [(title, after) for title, name in RESOURCES if (after := _after(one, name)) != UNKNOWN]
    return "; ".join(f"{title} {after}" for title, after in known)


def _after(one: dict[str, Any], name: str) -> str:
    found = next((p for p in one["predictions"] if p["measure"].endswith(name)), None)
    if found is None:
        return UNKNOWN
    low, high = (quantity(found[end], found["unit"]) for end in ("low", "high"))
    if low == high:
        return low
    return f"≤ {high}" if found["low"] is None else f"≥ {low}" if found["high"] is None else f"{low} – {high}"


def _card(one: dict[str, Any]) -> Remedy:
    checks = "; ".join(
        f"`{check['measure']} {check['op']} {check['value']:g}`{'' if check['unit'] == '1' else ' ' + check['unit']}"
        for check in one["verify"]
    )
    notes = (
        ("Assumes", one["assumption"]),
        ("Verify first", one["verify_first"]),
        ("Safety", f"{one['safety']}, because {one['safety_reason']}"),
        ("For", "; ".join(one["pros"])),
        ("Against", "; ".join(one["cons"])),
        ("Worked if", checks),
        ("Would be refuted by", one["refute"]),
        ("Way back", one["rollback"]),
        ("Effort", f"{one['effort']}, {one['apply']}"),
        ("Predicted for after the change", _predicted(one)),
        ("On the predictions", _limits(one["predictions"])),
    )
    mark = f"{one['safety']}, {gain(one['gain']).replace(' and ', ' to ')}"
    code = "\n".join(change["code"] for change in one["changes"])
    return Remedy(one["id"], one["title"], mark, one["why"], code, tuple((name, text) for name, text in notes if text))


def _limits(predictions: list[dict[str, Any]]) -> str:
    """What the predictions that are intervals rest on, or why they have no end."""
    return "; ".join(
        f"{label(p['measure'].rpartition('.')[2])}: {p['note']}"
        for p in predictions
        if p["note"] and (p["low"] is None or p["low"] != p["high"])
    )


def _plain(one: dict[str, Any]) -> Note:
    return Note(f"{one['title']}: {one['text']}")
