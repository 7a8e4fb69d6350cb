"""Lengths of Fourier transforms. They are NumPy's: the import of ``scipy.fft`` takes a tenth of a small diagnosis."""

from __future__ import annotations


def fast_length(n: int) -> int:
    """The least length of ``n`` or more of the form k 2^m, k one of 1, 3, 5, 9, 15: at most a quarter longer."""
    return min(k << (-(-n // k) - 1).bit_length() for k in (1, 3, 5, 9, 15))
