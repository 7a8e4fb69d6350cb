"""Runs whose truth is known."""
