"""What a Xid of the NVIDIA driver, or a SXid of its NVSwitches, is a sign of: the hardware, a program, or either.

By NVIDIA's catalog (docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html). Of the hardware or its firmware are
those for which it asks for a reset of the GPU, for a restart of the machine, or for a look at memory, links or power;
of a program those that the program alone has to be restarted and checked for, and 43 and 45, with which its work on the
GPU ends. Where the line itself says whether an error was fatal, as those of NVLink and NVSwitch do, that counts.
"""

from __future__ import annotations

import pandas as pd

HARDWARE_XIDS = frozenset(
    {
        *(46, 48, 54, 62, 63, 64, 74, 79, 92, 94, 95, 109, 110, 119, 120, 121, 136, 140, 143),
        *range(144, 151),
        *(154, 155, 156, 157, 158, 167, 168, 171, 172),
    }
)
PROGRAM_XIDS = frozenset({11, 13, 25, 31, 32, 37, 43, 45, 69, 80})
NO_ERRORS = frozenset({106, 107})
"""Messages of a test."""
LOST_XID = 79
HARDWARE, PROGRAM, UNCLEAR = "hardware", "program", "unclear"

_XID = r"(?i)\bxid\b\D{0,40}?(?:\([^)]*\)\D{0,4})?(\d{1,3})\b"
_SXID = r"(?i)\bsxid\b\s{0,9}\([^)]{0,80}\)\s{0,9}:\s{0,9}(\d{1,6})\b"
_FATAL = r"(?i)(?<!non)(?<!non-)\bfatal\b"
_NOT_FATAL = r"(?i)\bnon-?fatal\b"
_RECOVERED = r"recovery action changed from .{0,60}? to 0x0\b"


def xids(lines: pd.Series) -> pd.DataFrame:
    """Of each line ``xid`` and ``sxid``, NaN where it names none, and ``origin``: None where it tells of no error."""
    xid = pd.to_numeric(lines.str.extract(_XID)[0]).astype(float)
    sxid = pd.to_numeric(lines.str.extract(_SXID)[0]).astype(float)
    mild = lines.str.contains(_NOT_FATAL)
    hardware = (xid.isin(HARDWARE_XIDS) & ~mild) | (sxid.notna() & lines.str.contains(_FATAL))
    quiet = xid.isin(NO_ERRORS) | lines.str.contains(_RECOVERED)
    origin = pd.Series(UNCLEAR, lines.index, dtype=object).mask(xid.isin(PROGRAM_XIDS), PROGRAM)
    origin = origin.mask(hardware, HARDWARE).where((xid.notna() | sxid.notna()) & ~quiet, None)
    return pd.DataFrame({"xid": xid, "sxid": sxid, "origin": origin})
