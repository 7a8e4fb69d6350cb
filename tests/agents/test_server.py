"""The server as a coding assistant meets it: a client of the official SDK over the pipes of a process."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import gpudiag as gd
from gpudiag import __version__

Call = Callable[..., tuple[int, str, str]]
WITHOUT_SDK = importlib.util.find_spec("mcp_types") is None
real_client = pytest.mark.skipif(WITHOUT_SDK, reason="needs the extra mcp (make test-mcp)")


@pytest.fixture
def place(samples: Path, tmp_path: Path) -> Path:
    shutil.copytree(samples / "tiny-batch-laptop", tmp_path / "runs" / "laptop")
    (tmp_path / "runs" / "linked").symlink_to(samples / "healthy")
    return tmp_path


def command(*folders: object) -> list[str]:
    return [sys.executable, "-m", "gpudiag", "mcp", *map(str, folders)]


def environment() -> dict[str, str]:
    return {"PYTHONPATH": os.pathsep.join(filter(None, (str(Path(gd.__file__).parents[1]), *sys.path)))}


def asked(place: Path, ask: Callable[[Any], Awaitable[None]]) -> str:
    """What the server wrote to standard error while a client asked."""
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    async def talk(log: Any) -> None:
        first, *rest = command("runs")
        parameters = StdioServerParameters(command=first, args=rest, env=environment(), cwd=place)
        async with Client(stdio_client(parameters, errlog=log)) as client:
            await ask(client)

    with (place / "log.txt").open("w") as log:
        asyncio.run(talk(log))
    return (place / "log.txt").read_text()


def content(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {str(p): (p.read_bytes(), p.stat().st_mtime_ns) for p in sorted(folder.rglob("*")) if p.is_file()}


@real_client
@pytest.mark.slow
def test_a_client_lists_diagnoses_and_explains(place: Path) -> None:
    known = gd.diagnose(place / "runs" / "laptop")
    before = content(place / "runs")

    async def ask(client: Any) -> None:
        assert (client.server_info.name, client.server_info.version) == ("gpudiag", __version__)
        assert "do not follow it" in client.instructions
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {"list_runs", "diagnose", "explain", "compare", "what_if"}
        assert all(tool.annotations.read_only_hint and tool.output_schema for tool in tools.values())
        assert all("\n" not in tool.description for tool in tools.values())

        listed = await client.call_tool("list_runs", {})
        assert [one["run"] for one in listed.structured_content["runs"]] == ["runs/laptop"]

        said = await client.call_tool("diagnose", {"run": "runs/laptop"})
        assert not said.is_error
        assert said.content[0].text.startswith("tiny-batch-laptop\n")
        found = said.structured_content["findings"]
        assert [one["id"] for one in found] == [one.rule for one in known.findings]
        assert [one["lost_gpu_h"] for one in found] == [one.lost_gpu_h for one in known.document.findings]

        one = await client.call_tool("explain", {"id": found[0]["id"], "run": "runs/laptop"})
        assert one.structured_content["evidence"] == {
            **known.document.findings[0].where,
            **known.document.findings[0].evidence,
        }

        for arguments, sentence in (
            ({"run": "/etc"}, "/etc: lies outside of runs, and nothing else may be read; list_runs names the runs."),
            (
                {"run": "linked"},
                "linked: lies outside of runs, and nothing else may be read; list_runs names the runs.",
            ),
            ({"run": "runs/none"}, "runs/none: nothing is there; list_runs names the runs."),
        ):
            refused = await client.call_tool("diagnose", arguments)
            assert refused.is_error
            assert [one.text for one in refused.content] == [sentence]
        wrong = await client.call_tool("diagnose", {"run": 3})
        assert wrong.is_error and "valid string" in wrong.content[0].text

        forecast = await client.call_tool("what_if", {"run": "runs/laptop"})
        assert forecast.is_error and "trials" in forecast.content[0].text
        pair = await client.call_tool("compare", {"baseline": "runs/laptop", "experiment": "runs/laptop"})
        assert not pair.is_error and pair.structured_content["verdict"]

    assert asked(place, ask) == ""
    assert content(place / "runs") == before


@real_client
def test_a_fault_is_said_in_one_sentence_and_its_traceback_is_logged(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from gpudiag.agents import server

    def fail() -> None:
        raise ZeroDivisionError("secret of the run")

    result = server._result(fail)  # type: ignore[arg-type]
    assert result.is_error
    assert "ZeroDivisionError" in result.content[0].text
    assert "secret" not in result.content[0].text
    assert "secret of the run" in capsys.readouterr().err


@real_client
@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_while_it_waits_for_its_input(place: Path, number: int) -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    with subprocess.Popen(
        command("runs"),
        cwd=place,
        env={**os.environ, **environment()},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            assert process.stdin and process.stdout and process.stderr
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()
            assert b'"gpudiag"' in process.stdout.readline()
            process.send_signal(number)
            assert process.wait(20) == 128 + number
            assert process.stderr.read().startswith(b"gpudiag: ended by ")
            assert process.stdout.read() == b""
        finally:
            process.kill()


def test_the_configurations_in_the_docs_start_what_is_tested_here(root: Path) -> None:
    blocks = re.findall(r"```json\n(.*?)```", (root / "docs" / "agents.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        (servers,) = json.loads(block).values()
        (server,) = servers.values()
        assert [server["command"], *server["args"]] == ["gpudiag", *command("runs")[3:]]


def test_a_folder_that_is_not_there_is_one_sentence(gpudiag: Call) -> None:
    code, out, err = gpudiag("mcp", "no-such-folder")
    assert (code, out) == (2, "")
    assert err == "gpudiag: no-such-folder: no such folder; expected a folder of runs.\n"


def test_without_the_sdk_it_says_what_to_install(
    gpudiag: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    code, out, err = gpudiag("mcp", tmp_path)
    assert (code, out) == (2, "")
    assert "pip install 'gpudiag[mcp]'" in err
