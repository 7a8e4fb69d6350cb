"""Which rows speak of the same GPU: by uuid, then by bus id, then by index of a host; in one file and over several."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, product
from string import ascii_lowercase

from gpudiag.statement import NOTHING, Statement

UUID = re.compile(r"(?:GPU|MIG)-[0-9a-fA-F-]{8,}")
BUS_ID = re.compile(r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d")
_VENDORS = frozenset(["nvidia", "geforce", "tesla", "quadro", "amd", "radeon", "instinct", "graphics", "gpu"])


@dataclass(frozen=True)
class GpuIdentity:
    """What rows say of the GPU they speak of; an empty text is unknown."""

    index: str = ""
    uuid: str = ""
    bus_id: str = ""
    name: str = ""
    driver: str = ""
    host: str = ""

    def on_host(self, text: str) -> str:
        """A name that the GPU has on its host alone, as ``node1/0``; the name itself where no host is known."""
        return f"{self.host}/{text}" if self.host and text else text


HOSTS = "GPUs of several hosts are named host/index."
TWO_GPUS = "Two different GPUs have index {index}; the one seen later is called {label}."
TWO_GPUS_AS = "Two different GPUs have index {index} ({why}); the one seen later is called {label}."
OTHER_MODEL = "{one} and {other}"


def _never(_one: int, _other: int) -> Statement:
    return NOTHING


def resolve(
    identities: Sequence[GpuIdentity], apart: Callable[[int, int], Statement] = _never
) -> tuple[list[str], list[str]]:
    """The id of the GPU behind each identity, and a note for each id that had to be made up.

    They are one GPU if their uuids are equal, or their bus ids, or their indices where nothing above
    contradicts. A second GPU at an index already taken gets a letter: 0, 0b, 0c. On several hosts, bus ids and indices
    are those of a host, and ids begin with it: node1/0, node2/0.

    Args:
        identities: what each log says of each of its GPUs.
        apart: why two of them (by position) of one index are different GPUs all the same; NOTHING if nothing says so.
    """
    hosts = machines(identities)
    identities = [_on_its_machine(one, hosts) for one in identities]
    gpus: list[dict[str, set[str]]] = []
    owner: list[int] = [-1] * len(identities)
    why: dict[int, Statement] = {}
    # Those that say more come first, so that a bare index joins the GPU that has it.
    for at in sorted(range(len(identities)), key=lambda k: (not identities[k].uuid, not identities[k].bus_id, k)):
        reasons = _reasons(at, identities, owner, apart)
        owner[at] = _owner(identities[at], gpus, reasons)
        if reasons:
            why.setdefault(owner[at], next(iter(reasons.values())))
        known = gpus[owner[at]]
        for kind, value in _keys(identities[at]):
            known[kind].add(value)
    labels, notes = _labels(identities, owner, len(gpus), why)
    if hosts:
        notes.insert(0, HOSTS)
    return [labels[gpu] for gpu in owner], notes


def machines(identities: Sequence[GpuIdentity]) -> dict[str, str]:
    """For each host that is named, the name of its machine; empty where all are one machine.

    Two names are of one machine where a GPU of one uuid is on both, as in containers, or one is the other with its
    domain.
    """
    named = list(dict.fromkeys(one.host for one in identities if one.host))
    short = {name: name.casefold().partition(".")[0] for name in named}
    bare = {name.casefold() for name in named}
    machine = {name: short[name] if short[name] in bare else name.casefold() for name in named}
    of_gpu: dict[str, str] = {}
    for one in identities:
        if one.host and one.uuid:
            other = machine[one.host]
            same = of_gpu.setdefault(one.uuid.lower(), other)
            if same != other:
                machine = {name: same if at == other else at for name, at in machine.items()}
                of_gpu = {uuid: same if at == other else at for uuid, at in of_gpu.items()}
    first = {machine[name]: name for name in reversed(named)}
    return {name: first[at] for name, at in machine.items()} if len(first) > 1 else {}


def _on_its_machine(identity: GpuIdentity, hosts: Mapping[str, str]) -> GpuIdentity:
    """The identity with the name of its machine, which is left out where there is one only."""
    index = identity.index.removeprefix(f"{identity.host}/") if hosts and identity.host else identity.index
    return replace(identity, host=hosts.get(identity.host, ""), index=index)


def _keys(identity: GpuIdentity) -> list[tuple[str, str]]:
    bus_id, index = identity.on_host(short_bus_id(identity.bus_id)), identity.on_host(identity.index)
    keys = (("uuid", identity.uuid.lower()), ("bus_id", bus_id), ("index", index))
    return [(kind, value) for kind, value in keys if value]


def short_bus_id(text: str) -> str:
    """A PCI bus id without leading zeros of its domain and in lower case: drivers print 4 or 8 digits of it."""
    return re.sub(r"^0*([0-9a-f]*):", r"\1:", text.strip().lower())


def other_model(one: GpuIdentity, other: GpuIdentity) -> Statement:
    """Why two without a uuid or bus id to tell them are different GPUs by their names; NOTHING if they need not be."""
    if any((a.uuid or a.bus_id) for a in (one, other)) or same_model(one.name, other.name):
        return NOTHING
    return Statement(OTHER_MODEL, one=one.name, other=other.name)


def same_model(one: str, other: str) -> bool:
    """False if two names are those of different products; vendors, word order and what one leaves out do not count."""
    words, others = _model(one), _model(other)
    return not words or not others or words <= others or others <= words


def _model(name: str) -> frozenset[str]:
    """The letters and numbers that tell a product; a number that nvidia-smi cut off with dots tells nothing."""
    text = name.strip().lower()
    if text.startswith("0x"):  # a device id, as rocm-smi prints for boards it cannot name
        return frozenset()
    words = re.findall(r"[a-z]+|\d+", text)
    return frozenset(words[:-1] if text.endswith("..") else words) - _VENDORS


def _reasons(
    at: int, identities: Sequence[GpuIdentity], owner: Sequence[int], apart: Callable[[int, int], Statement]
) -> dict[int, Statement]:
    """For each GPU met so far that cannot be this identity's by its index alone, why."""
    found: dict[int, Statement] = {}
    for other, gpu in enumerate(owner):
        if gpu >= 0 and gpu not in found and _place(identities[other]) == _place(identities[at]) != "":
            reason = apart(other, at)
            if reason:
                found[gpu] = reason
    return found


def _place(identity: GpuIdentity) -> str:
    return identity.on_host(identity.index)


def _owner(identity: GpuIdentity, gpus: list[dict[str, set[str]]], apart: Container[int]) -> int:
    keys = _keys(identity)
    for rank, (kind, value) in enumerate(keys):
        for at, gpu in enumerate(gpus):
            if kind != "uuid" and at in apart:
                continue
            if value in gpu[kind] and not any(gpu[above] and other not in gpu[above] for above, other in keys[:rank]):
                return at
    if not keys and gpus:
        return 0
    gpus.append({"uuid": set(), "bus_id": set(), "index": set()})
    return len(gpus) - 1


def _suffixes() -> Iterator[str]:
    """B to z, then aa, ab and so on."""
    yield from ascii_lowercase[1:]
    for width in count(2):
        yield from map("".join, product(ascii_lowercase, repeat=width))


def _labels(
    identities: Sequence[GpuIdentity], owner: Sequence[int], count: int, why: Mapping[int, Statement]
) -> tuple[list[str], list[str]]:
    """An id for each GPU: the index it is first seen with, else the lowest free number."""
    wanted, hosts = [""] * count, [""] * count
    for identity, gpu in zip(identities, owner, strict=True):
        wanted[gpu] = wanted[gpu] or _place(identity)
        hosts[gpu] = hosts[gpu] or identity.host
    order = list(dict.fromkeys(owner))
    taken: set[str] = set()
    labels = [""] * count
    notes: list[str] = []
    for gpu in sorted(order, key=lambda k: not wanted[k]):
        free = (GpuIdentity(host=hosts[gpu]).on_host(str(n)) for n in range(count + len(taken) + 1))
        label = wanted[gpu] or next(name for name in free if name not in taken)
        if label in taken:
            index, label = label, next(label + more for more in _suffixes() if label + more not in taken)
            note = Statement(TWO_GPUS_AS if gpu in why else TWO_GPUS, index=index, label=label, why=why.get(gpu))
            notes.append(str(note))
        taken.add(label)
        labels[gpu] = label
    return labels, notes
