"""What telemetry of a cluster gave, as a file in the folder of a fleet."""

from __future__ import annotations

import json
from pathlib import Path

from gpudiag._load.own_outputs import check_own, is_own
from gpudiag.files import write
from gpudiag.fleets.cluster.cluster import Cluster
from gpudiag.fleets.row import from_plain, recording_from, to_plain
from gpudiag.plain_data import json_text
from gpudiag.report.fleet.document import ClusterDocument

FILE = "cluster.json"
SCHEMA = "gpudiag.fleet-cluster/1"


def keep_cluster(folder: Path, held: Cluster | None) -> None:
    """Write it in place of what an earlier fleet left; None: there is no such telemetry any more."""
    path = folder / FILE
    if held is not None:
        check_own(path)
        rows = [to_plain(row) for row in held.rows]
        write(path, json_text({"schema": SCHEMA, "about": held.about, "rows": rows, "recordings": held.recordings}))
    elif is_own(path):
        path.unlink()


def read_cluster(folder: Path) -> Cluster | None:
    """What the last fleet there left; None where there was no telemetry of a cluster, or another version wrote it."""
    from pydantic import TypeAdapter

    path = folder / FILE
    if not is_own(path):
        return None
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
        about = TypeAdapter(ClusterDocument).validate_python(held["about"])
        both = tuple(map(recording_from, held["recordings"]))
        return Cluster(tuple(from_plain(row) for row in held["rows"]), about, both)
    except (ValueError, KeyError, TypeError):
        return None
