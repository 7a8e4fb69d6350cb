"""Weeks, as a fleet is divided by them."""

from __future__ import annotations

from datetime import datetime


def week_of(start: str | None) -> str:
    """``2026-W07`` of a time in ISO 8601; '' of None."""
    return "{}-W{:02d}".format(*datetime.fromisoformat(start).isocalendar()[:2]) if start else ""
