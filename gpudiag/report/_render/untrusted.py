"""The look of an output without its style sheet, which a notebook that is not trusted removes: styles of elements stay.

JupyterLab keeps classes and most properties of a ``style`` attribute there, but no variable, and lays out ``dl`` and
tables by rules of its own. What stands here says the same as ``fragments.css``, or less; where it differs (a neutral
border, a fixed size) that sheet has the last word by ``!important``. Pages have the sheet, and drop these styles.
"""

from __future__ import annotations

import re

GREY = "rgba(128,128,128,0.4)"
LEVELS = {"critical": "#d0453a", "warning": "#b9770e", "note": "#2f81d4", "ok": "#2f9e5c", "unknown": "#7c80cf"}
"""Of borders: 3:1 on white and on JupyterLab's dark ground."""
_CARD = f"margin: 0 0 0.75rem; padding: 0.75rem 1rem 0.5rem; border: 1px solid {GREY}; border-radius: 8px"
_ROW = "display: flex; flex-wrap: wrap; gap: 0.35rem 1.5rem"
_FACT = "display: flex; flex-wrap: wrap; gap: 0 0.45em"
_CODE = f"margin: 0.5rem 0; padding: 0.5rem 0.75rem; border: 1px solid {GREY}; border-radius: 6px; overflow-x: auto"
CLASSES = {
    "gd-finding": _CARD,
    "gd-summary": "margin: 0 0 0.75rem; padding-left: 1rem",
    "gd-headline": "margin: 0 0 0.35rem; font-size: 1.4rem; font-weight: 700; line-height: 1.25",
    "gd-verdict": "margin: 0 0 1rem; font-weight: 700",
    "gd-chips": "display: flex; flex-wrap: wrap; gap: 0.4rem 1.1rem",
    "gd-chip": "font-weight: 600; white-space: nowrap",
    "gd-cost": "font-weight: 700; white-space: nowrap",
    "gd-tiles": "display: flex; flex-wrap: wrap; gap: 0.75rem; margin: 0.75rem 0",
    "gd-said": "display: grid; gap: 0.75rem",
    "gd-facts": _ROW,
    "gd-code": _CODE,
    "gd-scroll": "margin: 1rem 0; overflow-x: auto",
    "gd-number": "text-align: right; vertical-align: top",
}
"""By the first class of an element that is named here."""
TAGS = {
    "th": "text-align: left; vertical-align: top",
    "td": "text-align: left; vertical-align: top",
    "caption": "caption-side: bottom; text-align: left",
    "small": "display: block",
    "header": "display: flex; flex-wrap: wrap; align-items: baseline; gap: 0.4rem 0.75rem",
    "h3": "margin: 0; font-size: 1.0625rem; flex: 1 1 14rem",
    "dt": "float: none; width: auto; margin: 0; padding: 0",
    "dd": "float: none; width: auto; margin: 0; padding: 0",
}
"""Of elements without such a class."""
_NAME = f"{TAGS['dt']}; font-weight: 400"
WITHIN = {
    "gd-tiles": {
        "div": "display: flex; flex-direction: column-reverse; justify-content: flex-end; flex: 1 1 9.5rem",
        "dt": _NAME,
        "dd": f"{TAGS['dd']}; font-size: 1.375rem; font-weight: 600",
    },
    "gd-facts": {"div": _FACT, "dt": _NAME, "dd": f"{TAGS['dd']}; font-weight: 600"},
    "gd-masthead": {"dl": _ROW, "div": _FACT, "header": "display: block"},
}
"""Of elements within a list or a masthead."""
NESTED = ("dl", "header")
_STYLED = re.compile(r' style="[^"<>]*"')
_START = re.compile(r'<(/?)([a-z0-9]+)((?: [a-z-]+(?:="[^"]*")?)*)>')
_CLASS = re.compile(r' class="([^"]*)"')


def styled(html: str) -> str:
    """The same with a style for each element that needs one; none may have one before."""
    around = [""]  # the names in WITHIN that lists and heads stand in, the innermost last

    def with_style(found: re.Match[str]) -> str:
        end, tag, attributes = found.groups()
        if end:
            if tag in NESTED:
                around.pop()
            return found[0]
        named = _CLASS.search(attributes)
        classes = named[1].split() if named else []
        if tag in NESTED:
            around.append(next((name for name in classes if name in WITHIN), around[-1]))
        style = _style(tag, classes, around[-1])
        return f'<{tag}{attributes} style="{style}">' if style else found[0]

    return _START.sub(with_style, html)


def _style(tag: str, classes: list[str], around: str) -> str:
    own = next((CLASSES[name] for name in classes if name in CLASSES), "")
    style = own or WITHIN.get(around, {}).get(tag, "") or TAGS.get(tag, "")
    level = next((LEVELS[name[3:]] for name in classes if name[3:] in LEVELS), GREY)
    width = {"gd-finding": "4px", "gd-summary": "6px"}
    return style + next((f"; border-left: {width[name]} solid {level}" for name in classes if name in width), "")


def bare(html: str) -> str:
    """The same without any style."""
    return _STYLED.sub("", html)
