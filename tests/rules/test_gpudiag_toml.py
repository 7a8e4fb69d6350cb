"""gpudiag.toml as a file: every mistake in it is one sentence."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest

from gpudiag.errors import ConfigError, InputNotFound
from gpudiag.rules._engine.gpudiag_toml import GpudiagToml, read_gpudiag_toml
from gpudiag.rules._engine.suppression import Suppression

KNOWN = ("gpu-unused", "memory-leak")


def test_reading(tmp_path: Path) -> None:
    path = tmp_path / "gpudiag.toml"
    path.write_text('[[suppress]]\nrule = "gpu-unused"\nrun = "a*"\nuntil = 2027-01-31\nreason = " why "\n')
    (read,) = read_gpudiag_toml(path, KNOWN).suppress
    assert read == Suppression(rule="gpu-unused", reason="why", run="a*", until=date(2027, 1, 31))
    path.write_text("")
    assert read_gpudiag_toml(path, KNOWN) == GpudiagToml(docs_url="", suppress=())


ADDRESSES = {
    "https://docs.example.org/gpudiag/": "https://docs.example.org/gpudiag",
    "http://10.0.0.7:8080": "http://10.0.0.7:8080",
    "http://[::1]:80/a": "http://[::1]:80/a",
    "file:///srv/gpudiag%20docs": "file:///srv/gpudiag%20docs",
    " https://x.org ": "https://x.org",
    "": "",
}


@pytest.mark.parametrize("given", ADDRESSES)
def test_the_address_of_the_documentation(given: str, tmp_path: Path) -> None:
    path = tmp_path / "gpudiag.toml"
    path.write_text(f'docs_url = "{given}"')
    assert read_gpudiag_toml(path, KNOWN).docs_url == ADDRESSES[given]


BAD = {
    '[[suppress]]\nrule = "gpu-unsed"\nreason = "x"\n': "suppresses rules that do not exist: 'gpu-unsed' "
    "(did you mean 'gpu-unused'?)",
    '[[suppress]]\nrule = "gpu-unused"\n': "'suppress.0.reason' is missing",
    '[[suppress]]\nrule = "gpu-unused"\nreason = "  "\n': "key 'suppress.0.reason'",
    '[[suppress]]\nrule = "gpu-unused"\nreason = "x"\nuntill = 2027-01-01\n': "did you mean 'until'?",
    '[[suppress]]\nrule = "gpu-unused"\nreason = "x"\nuntil = "soon"\n': "key 'suppress.0.until'",
    "[[supress]]\n": "did you mean 'suppress'?",
    "docs_uri = 'https://x.org'\n": "did you mean 'docs_url'?",
    "docs_url = 5\n": "key 'docs_url': expected an address such as https://docs.example.org/gpudiag (",
    **{
        f"docs_url = '{odd}'\n": f"user, query and fragment, of letters, digits and /._~%+,=:-, but got {odd!r}."
        for odd in (
            "javascript:alert(1)",
            "docs.example.org",
            "https://x.org/?a=1",
            "https://",
            'https://x.org/"><b>',
            "https://x.org/a b",
            "https://x.org/(a)",
            "http://x.org#a",
            "HTTPS://x.org",
            "file://host/share",
            "file://",
        )
    },
    "docs_url = 'https://me:hunter2@x.org'\n": "but got 'https://me:***@x.org'.",
    "suppress = [\n": "is not valid TOML",
}


@pytest.mark.parametrize("text", BAD)
def test_mistakes_are_one_sentence(text: str, tmp_path: Path) -> None:
    path = tmp_path / "gpudiag.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=re.escape(BAD[text])) as caught:
        read_gpudiag_toml(path, KNOWN)
    assert str(caught.value).startswith(str(path)) and "\n" not in str(caught.value).split("(at")[0]


def test_every_unknown_rule_is_named_at_once(tmp_path: Path) -> None:
    path = tmp_path / "gpudiag.toml"
    path.write_text('[[suppress]]\nrule="one"\nreason="x"\n[[suppress]]\nrule="two"\nreason="x"\n')
    with pytest.raises(ConfigError, match=r"'one' .*; 'two' "):
        read_gpudiag_toml(path, KNOWN)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputNotFound, match="no such file"):
        read_gpudiag_toml(tmp_path / "gpudiag.toml", KNOWN)
