"""``make fuzz``: changed files through every reader, the run builder and the diagnosis, until the time is up.

    python tests/fuzzing --minutes 10 --seed 7      # 7 is drawn where it is not given
    python tests/fuzzing --again tests/fuzzed/NAME  # one kept case
    python tests/fuzzing --seed 7 --case 1234       # one case of a run

A fault is written as small files into tests/fuzzed/, where tests/hostile/test_fuzzed.py finds it from then on; one that
needs more than 4 KB is told by its seed and number. A case that
takes more than 20 s of processor time or 3 GiB is a fault as well. Ends with 1 where there was one.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
from case import fault_of, faulty, made, put, smallest
from seeds import seeds

HERE = Path(__file__).resolve().parent
KEPT = HERE.parent / "fuzzed"
WORKERS = 2
LONGEST_S = 20.0
MOST_BYTES = 3 << 30
MOST_KEPT = 4096


def main() -> int:
    parser = argparse.ArgumentParser(prog="make fuzz")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**31))
    parser.add_argument("--case", type=int)
    parser.add_argument("--again", type=Path)
    parser.add_argument("--from", dest="first", type=int)
    given = parser.parse_args()
    if given.again or given.case is not None:
        fault = fault_of(given.again) if given.again else faulty(made(given.seed, given.case, seeds()))
        print(fault or "no fault")
        return int(bool(fault))
    if given.first is not None:
        return _work(given.seed, given.first)
    print(f"seed {given.seed}, {given.minutes:g} minutes, {WORKERS} processes", flush=True)
    found: dict[str, str] = {}
    counts = [0] * WORKERS
    threads = [
        threading.Thread(target=_watch, args=(given.seed, place, time.time() + 60 * given.minutes, found, counts))
        for place in range(WORKERS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for fault, said in found.items():
        print(f"{fault}: {said}")
    print(f"seed {given.seed}: {sum(counts):,} cases, {len(found)} kinds of fault")
    return int(bool(found))


def _work(seed: int, first: int) -> int:
    """Cases one after another; what happens is told on stdout, a line of JSON each."""
    known = seeds()
    seen: set[str] = set()
    for number in range(first, 2**31, WORKERS):
        print(json.dumps({"case": number}), flush=True)
        files = made(seed, number, known)
        fault = faulty(files)
        if fault and fault not in seen:
            seen.add(fault)
            print(json.dumps({"fault": fault, "at": number}), flush=True)
            small = smallest(files, fault)
            if sum(map(len, small.values())) > MOST_KEPT:  # a database, or a file of somebody else: told by its number
                continue
            folder = KEPT / re.sub(r"\W+", "-", f"{fault}-{_digest(small)}")
            folder.mkdir(parents=True, exist_ok=True)
            put(small, folder)
            print(json.dumps({"kept": folder.name, "of": fault}), flush=True)
    return 0


def _digest(files: dict[str, bytes]) -> str:
    return hashlib.sha256(b"\0".join(files.values())).hexdigest()[:6]


def _watch(seed: int, place: int, until: float, found: dict[str, str], counts: list[int]) -> None:
    """Start a worker, and another after each case that takes too long or too much."""
    number = place
    while time.time() < until:
        worker = subprocess.Popen(
            [sys.executable, str(HERE), "--seed", str(seed), "--from", str(number)], stdout=subprocess.PIPE, text=True
        )
        state = {"case": number, "began_s": 0.0, "small": False}
        reader = threading.Thread(target=_listen, args=(worker, seed, place, state, found, counts))
        reader.start()
        over = ""
        while worker.poll() is None and not over and time.time() < until:
            time.sleep(0.5)
            over = _over(worker.pid, state)
        worker.kill()
        worker.wait()
        reader.join()
        number = int(state["case"]) + WORKERS
        died = "" if over or time.time() >= until else f"process ended with {worker.returncode}"
        if over or died:
            what = f"python tests/fuzzing --seed {seed} --case {state['case']}"
            found.setdefault(over or died, what)
            print(f"{over or died}: {what}", flush=True)


def _over(pid: int, state: dict[str, float]) -> str:
    try:
        process = psutil.Process(pid)
        used = process.cpu_times()
        if process.memory_info().rss > MOST_BYTES:
            return f"more than {MOST_BYTES >> 30} GiB"
    except psutil.Error:
        return ""
    spent = used.user + used.system
    if state["began_s"] == 0 or state.pop("fresh", False):
        state["began_s"] = spent
    return f"more than {LONGEST_S:g} s" if not state["small"] and spent - state["began_s"] > LONGEST_S else ""


def _listen(
    worker: subprocess.Popen[str],
    seed: int,
    place: int,
    state: dict[str, float],
    found: dict[str, str],
    counts: list[int],
) -> None:
    assert worker.stdout is not None
    for line in worker.stdout:
        said = json.loads(line)
        if "case" in said:
            state |= {"case": said["case"], "fresh": True, "small": False}
            counts[place] += 1
        elif "fault" in said:
            state["small"] = True
            if said["fault"] not in found:
                print(f"{said['fault']}: case {said['at']}", flush=True)
            found.setdefault(said["fault"], f"python tests/fuzzing --seed {seed} --case {said['at']}")
        else:
            found[said["of"]] = f"python tests/fuzzing --again tests/fuzzed/{said['kept']}"


if __name__ == "__main__":
    raise SystemExit(main())
