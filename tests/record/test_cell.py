"""A cell that begins with %%gpu, in a real IPython with readings that a script gives, and in a real kernel."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell
from replay import Replay, no_driver, reading

import gpudiag as gd
from gpudiag.record.cell import Cells, without_line


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InteractiveShell]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setattr("IPython.core.history.HistoryAccessor.enabled", False, raising=False)
    made = InteractiveShell(colors="nocolor")
    yield made
    made.history_manager.end_session()


def busy(*utils: float) -> list[dict[str, float]]:
    return [reading(util) for util in utils]


def wait(n: int, gpu: str = "0") -> str:
    """A cell that waits until n samples have been taken of the GPU, and then runs on."""
    return f"while len(replay.scripts[{gpu!r}]) > {n}:\n    time.sleep(0.005)\n"


def run(shell: InteractiveShell, replay: Replay, code: str) -> object:
    Cells(replay).register(shell)
    shell.push({"replay": replay})
    shell.run_cell("import time")
    return shell.run_cell(code)


@pytest.mark.slow
def test_a_line_for_each_gpu_that_was_used(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    replay = Replay({"0": busy(*[100] * 30), "1": busy(*[0] * 60)}, usual=reading(0))
    result = run(shell, replay, "%%gpu --interval 0.01\n" + wait(10) + "'the value'")
    out = capsys.readouterr().out
    assert result.success and result.result == "the value"
    (line,) = (line for line in out.splitlines() if line.startswith("GPU"))
    assert line.startswith("GPU 0: 100 % mean utilization, 0 % of the time idle (below 10 %), 12.3 GiB at most; ")
    assert line.endswith(" samples")
    assert "the value" in out
    assert not list(Path.cwd().glob("*.csv"))


@pytest.mark.slow
def test_the_numbers_are_those_of_the_file_that_is_kept(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    replay = Replay({"0": busy(*[80, 0] * 20)}, usual=reading(80))
    run(shell, replay, "%%gpu -o 'my cell.csv' --interval 0.01\n" + wait(4))
    line = capsys.readouterr().out.strip().splitlines()[-1]
    samples = gd.read_telemetry("my cell.csv").gpu
    known = samples.dropna(subset="util_pct")
    assert f"{len(known)} samples" in line
    mean, idle = float(line.split(": ")[1].split(" %")[0]), float(line.split(", ")[1].split(" %")[0])
    assert mean == pytest.approx(known["util_pct"].mean(), abs=6)
    assert idle == pytest.approx(100 * (known["util_pct"] < 10).mean(), abs=8)


@pytest.mark.slow
def test_a_second_cell_into_the_same_file_is_summed_up_alone(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    replay = Replay({"0": busy(*[100] * 20)}, usual=reading(20))
    run(shell, replay, "%%gpu -o cell.csv --interval 0.01\n" + wait(0))
    shell.run_cell("replay.scripts['0'] = [replay.usual] * 20")
    capsys.readouterr()
    shell.run_cell("%%gpu -o cell.csv --interval 0.01\n" + wait(5))
    assert "GPU 0: 20 % mean utilization" in capsys.readouterr().out


def test_a_short_cell_is_not_assessed(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    run(shell, Replay(), "%%gpu --interval 100\n1")
    out = capsys.readouterr().out
    assert "utilization not assessed" in out and "where 5 are needed" in out
    assert "sample" in out and "mean utilization" not in out


@pytest.mark.slow
def test_idle_gpus_are_said_to_be_unused(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    replay = Replay({"0": busy(*[0] * 20), "1": busy(*[0] * 20)}, usual=reading(0))
    run(shell, replay, "%%gpu --interval 0.01\n" + wait(5))
    assert "no GPU was used; 2 GPUs, " in capsys.readouterr().out


@pytest.mark.slow
def test_an_error_is_shown_as_usual_and_ends_the_recording(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    replay = Replay({"0": busy(*[100] * 30)}, usual=reading(100))
    result = run(shell, replay, "%%gpu --interval 0.01\n" + wait(10) + "1 / 0")
    out = capsys.readouterr().out
    assert isinstance(result.error_in_exec, ZeroDivisionError)
    assert out.count("ZeroDivisionError: division by zero") == 1
    assert "line 4" in out or "----> 4" in out  # as the cell was typed
    assert "GPU 0: 100 % mean utilization" in out
    assert replay.closed == 1
    result = shell.run_cell("2")
    assert "GPU 0" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("%%gpu --interval soon", "invalid float value: 'soon'; expected %%gpu [-o FILE]"),
        ("%%gpu -o 'x", "No closing quotation; expected %%gpu"),
        ("%%gpu --help", "unrecognized arguments: --help"),
        ("%%gpu -o .", ""),
        ("%%gpu --interval -1", "interval"),
    ],
)
def test_what_cannot_be_recorded_is_a_sentence_and_the_cell_runs(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str], line: str, said: str
) -> None:
    result = run(shell, Replay(), f"{line}\n6 * 7")
    err = capsys.readouterr().err
    assert result.result == 42
    assert err.startswith("gpudiag: ") and said in err and err.endswith("The cell is not recorded.\n")
    assert err.count("\n") == 1


def test_without_a_driver_the_cell_runs(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    result = run(shell, Replay(opens=[no_driver()]), "%%gpu\n6 * 7")
    out = capsys.readouterr()
    assert result.result == 42
    assert out.err == ("gpudiag: no NVIDIA driver on this machine: Driver Not Loaded. The cell is not recorded.\n")
    assert "GPU" not in out.out


@pytest.mark.slow
def test_other_cells_and_cells_within_a_cell_are_left_alone(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    replay = Replay({"0": busy(*[100] * 30)})
    run(shell, replay, "%%gpu --interval 0.01\nget_ipython().run_cell('%%gpu\\n1')\n" + wait(10))
    assert capsys.readouterr().out.count("GPU 0: ") == 1
    shell.run_cell("print('%%gpu')")
    assert capsys.readouterr().out == "%%gpu\n"


@pytest.mark.parametrize("between", ["", "\n\n"])
@pytest.mark.slow
def test_another_cell_magic_may_follow(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str], between: str
) -> None:
    replay = Replay({"0": busy(*[100] * 30)})
    run(shell, replay, f"%%gpu --interval 0.01\n{between}%%capture caught\n{wait(10)}print('caught')")
    assert shell.user_ns["caught"].stdout == "caught\n"
    assert "GPU 0: 100 % mean utilization" in capsys.readouterr().out


@pytest.mark.slow
def test_await_works_in_a_recorded_cell(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    result = run(shell, Replay(), "%%gpu --interval 0.01\nimport asyncio\nawait asyncio.sleep(0.2)\n6 * 7")
    assert result.result == 42
    assert "GPU 0: 85 % mean utilization" in capsys.readouterr().out


def test_only_the_first_line_counts() -> None:
    assert without_line(["\n", "%%gpu -o x\n", "1\n"]) == ["\n", "\n", "1\n"]
    for lines in (["1\n", "%%gpu\n"], ["%%gpus\n"], ["%%time\n", "%%gpu\n"], []):
        assert without_line(lines) == lines


def test_loading_it_twice_registers_it_once(shell: InteractiveShell) -> None:
    shell.run_line_magic("load_ext", "gpudiag")
    gd.load_ipython_extension(shell)
    assert shell.input_transformers_cleanup.count(without_line) == 1


@pytest.mark.slow
def test_in_a_real_kernel_without_a_driver(tmp_path: Path) -> None:
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3", cwd=str(tmp_path))
    said: list[tuple[str, str]] = []

    def hear(message: dict) -> None:
        content = message["content"]
        text = content.get("text") or content.get("data", {}).get("text/plain") or content.get("ename") or ""
        said.append((message["msg_type"], text))

    try:
        client.execute_interactive("%load_ext gpudiag", timeout=60, output_hook=hear)
        client.execute_interactive("%%gpu\n6 * 7", timeout=60, output_hook=hear)
        reply = client.execute_interactive("%%gpu\n1 / 0", timeout=60, output_hook=hear)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    kinds = dict(said)
    assert kinds["execute_result"] == "42"
    assert kinds["error"] == "ZeroDivisionError" == reply["content"]["ename"]
    assert any(kind == "stream" and "driver" in text.lower() for kind, text in said)
