"""Event files of TensorBoard, byte by byte as its formats say, and a training of which all times are known."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

BEGIN_S = 1_772_000_000.25
FORMAT = b"\x1a\x0dbrain.Event:2"


def checksum(data: bytes) -> int:
    """CRC-32C bit by bit (RFC 3720, appendix B), masked as TFRecord says."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) % 2**32


def record(data: bytes) -> bytes:
    size = struct.pack("<Q", len(data))
    return size + struct.pack("<I", checksum(size)) + data + struct.pack("<I", checksum(data))


def number(value: int) -> bytes:
    out = b""
    while value >= 128:
        out, value = out + bytes([value % 128 + 128]), value // 128
    return out + bytes([value])


def part(field: int, data: bytes) -> bytes:
    return number(field * 8 + 2) + number(len(data)) + data


def scalar(tag: str, value: float, step: int, at_s: float, *, tensor: bool = False) -> bytes:
    """One as ``add_scalar`` of PyTorch writes it; ``tensor``: as TensorFlow 2 does."""
    told = b"\x15" + struct.pack("<f", value)
    if tensor:
        told = part(8, b"\x08\x01\x12\x00" + part(4, struct.pack("<f", value))) + part(9, part(1, part(1, b"scalars")))
    event = b"\x09" + struct.pack("<d", at_s) + (b"\x10" + number(step) if step else b"")
    return record(event + part(5, part(1, part(1, tag.encode()) + told)))


def head(at_s: float = BEGIN_S) -> bytes:
    return record(b"\x09" + struct.pack("<d", at_s) + FORMAT)


def written(folder: Path, events: Iterable[bytes], begun_s: float = BEGIN_S, more: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"events.out.tfevents.{int(begun_s)}.node1.17.0{more}"
    path.write_bytes(head(begun_s) + b"".join(events))
    return path


@dataclass(frozen=True)
class Course:
    """``n`` steps of 1 s, each ``every`` logged; an evaluation of 60 s each 500; after 700 steps it hangs for 300 s;
    after 1,240 it dies, is down for 200 s, and goes on from step 1,000.
    """

    n: int = 2000
    every: int = 10

    def moments(self) -> list[tuple[str, int, float]]:
        """What was, at which step, and its end in seconds since the beginning."""
        out, at_s, step, died = [], 0.0, 0, False
        while step < self.n:
            step, at_s = step + 1, at_s + 1.0 + (300.0 if step == 700 and not died else 0.0)
            out.append(("step", step, at_s))
            if step % 500 == 0:
                at_s += 60.0
                out.append(("evaluation", step, at_s))
            if step == 1240 and not died:
                at_s, step, died = at_s + 200.0, 1000, True
                out.append(("resumption", step, at_s))
        return out

    def events(self, folder: Path, *, trainer: bool = False) -> list[Path]:
        """A file for each attempt; ``trainer``: by the tags of Hugging Face's Trainer."""
        files: list[tuple[float, list[bytes]]] = [(BEGIN_S, [])]
        train, evaluate = ("train/loss", "eval/loss") if trainer else ("Loss/train", "Loss/val")
        for what, step, at_s in self.moments():
            at_s += BEGIN_S
            if what == "resumption":
                files.append((at_s, []))
            elif what == "evaluation":
                files[-1][1].append(scalar(evaluate, 0.5, step, at_s))
                files[-1][1].extend([scalar("eval/runtime", 60.0, step, at_s + 0.001)] * trainer)
            elif step % self.every == 0:
                files[-1][1].append(scalar(train, 2 / step, step, at_s))
                files[-1][1].append(scalar("train/learning_rate" if trainer else "lr", 0.1, step, at_s + 0.001))
        return [written(folder / f"run{number}", events, at_s) for number, (at_s, events) in enumerate(files)]

    def bars(self, path: Path) -> None:
        """What a bar printed, each 10 s, with its dictionaries on evaluations."""
        lines, begun_s = [], 0.0
        for what, step, at_s in self.moments():
            if what == "resumption":
                begun_s = at_s
                lines.append(f"Resuming training from checkpoint-{step}")
            elif what == "evaluation":
                lines.append(f"{{'eval_loss': 0.5, 'eval_runtime': 60.0, 'epoch': {step / 1000}}}")
            elif step % 10 == 0:
                minutes, seconds = divmod(int(at_s - begun_s), 60)
                lines.append(
                    f" {100 * step // self.n}%|#  | {step}/{self.n} [{minutes:02d}:{seconds:02d}<10:00,  1.0s/it]"
                )
        path.write_text("\n".join(lines) + "\n")
