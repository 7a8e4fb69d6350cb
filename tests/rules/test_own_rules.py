"""docs/own-rules.md is true: its rule runs, and what it says of NaN and of the ids holds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from gpudiag.errors import ConfigError


def snippet(root: Path) -> str:
    text = (root / "docs" / "own-rules.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    return code


@pytest.mark.slow
def test_the_rule_of_the_page_runs(root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.chdir(root)
    names: dict[str, Any] = {"__name__": "own_rules"}
    exec(compile(snippet(root), "own-rules.md", "exec"), names)
    d = names["d"]
    (own,) = [v for v in d.findings if v.rule == "nightly-room"]
    left = float(d.profiles["memory"].per_gpu["headroom_mib"].min())
    assert own.evidence == {"headroom_mib": left} and own.thresholds == {"min_left_mib": 6500.0}
    assert f"GPU 0 had {left / 1024:.1f} GiB left." in capsys.readouterr().out
    for shown in (d.to_markdown(), d.to_json()):
        assert "nightly-room" in shown and "Too little memory is left for the nightly job" in shown


@pytest.mark.slow
def test_its_limits_are_checked_like_any_other(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    code = snippet(root).replace("nightly-room.min_left_mib=6500", "nightly-room.min_left=6500")
    with pytest.raises(ConfigError, match="has no threshold 'min_left'; did you mean 'min_left_mib'"):
        exec(compile(code, "own-rules.md", "exec"), {"__name__": "own_rules"})
