"""Where an iteration's time goes, by a clock that calls move."""

from __future__ import annotations

import json

import pytest

from ale_velocity import breakdown
from ale_velocity.breakdown import Recorder, TimedAgent, TimedEnvs, timed_envs
from ale_velocity.cell import Cell, open_loop
from ale_velocity.checked import CheckedEnvs, TwoEnvs
from ale_velocity.cli import main
from ale_velocity.loops import LOOPS
from ale_velocity.measure import Protocol
from batched_fakes import BatchedFakeEnv, PairingAgent
from fakes import FakeClock

SECONDS = {"to_device": 0.001, "act": 0.002, "store": 0.003, "learn": 0.004}


def recorded(loop, iterations):
    """Run a loop whose agent takes the times above and whose receives take 5 ms, and return spans and seconds."""
    kind, clock = LOOPS[loop], FakeClock()
    recorder = Recorder(clock)
    agent = PairingAgent(4)
    for name, seconds in SECONDS.items():
        setattr(agent, name, taking(seconds, getattr(agent, name), clock))
    halves = [BatchedFakeEnv(2), BatchedFakeEnv(2)] if kind.layout == "two_envs" else [BatchedFakeEnv(4)]
    for half in halves:
        half.recv = taking(0.005, half.recv, clock)
    checked = [CheckedEnvs(half, half.num_envs, half.num_envs) for half in halves]
    envs = TwoEnvs(*checked) if len(checked) == 2 else checked[0]
    running = kind(timed_envs(envs, recorder), TimedAgent(agent, recorder), 1)
    recorder.spans.clear()
    start = clock.now
    running.run(iterations)
    return recorder.spans, clock.now - start


def taking(seconds, function, clock):
    def slow(*args, **kwargs):
        clock.advance(seconds)
        return function(*args, **kwargs)

    return slow


@pytest.mark.parametrize("loop", ["step", "send_recv", "ping_pong"])
def test_phases_by_hand(loop):
    """Each call's time is its phase's; ping-pong learns in every other iteration; nothing is left over."""
    spans, elapsed_s = recorded(loop, 10)
    update_ms = 2.0 if loop == "ping_pong" else 4.0
    assert breakdown.phases(spans, elapsed_s, 10) == {
        "act": 2.0,
        "actions to host": 0.0,
        "send": 0.0,
        "wait for emulator": 5.0,
        "host to device": 1.0,
        "store": 3.0,
        "update": update_ms,
        "other": pytest.approx(0.0),
    }


def test_batches_in_flight_show_the_overlap():
    """Half of ping-pong flies while the other half is learnt from: two batches, each longer than an iteration."""
    spans, _ = recorded("ping_pong", 10)
    flights = [span for span in spans if span.name == "batch in flight"]
    assert {"emulator 1", "emulator 2"} == {span.track for span in flights}
    assert flights[3].start_s < flights[2].end_s < flights[3].end_s


def test_the_trace_is_what_perfetto_reads():
    """Complete events in microseconds, a process a cell, a named thread a track."""
    spans = [["loop", "act", 0.001, 0.003], ["emulator", "batch in flight", 0.002, 0.0055]]
    trace = breakdown.chrome_trace({"dqn step n=4": spans})
    names = [(event["name"], event["args"]["name"]) for event in trace["traceEvents"] if event["ph"] == "M"]
    assert names == [("process_name", "dqn step n=4"), ("thread_name", "loop"), ("thread_name", "emulator")]
    events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert [(event["name"], event["pid"], event["tid"], event["ts"], event["dur"]) for event in events] == [
        ("act", 1, 1, 1000.0, 2000.0),
        ("batch in flight", 1, 2, 2000.0, 3500.0),
    ]


def test_the_command_prints_a_breakdown_and_writes_a_trace(capsys, tmp_path):
    """A real run: the emulator's wait is among the phases, and the file holds both cells."""
    trace, kept = tmp_path / "trace.json", tmp_path / "windows.json"
    options = ["--agent", "emulator", "--counts", "2", "--reps", "1", "--bench-steps", "20", "--warmup", "4"]
    files = ["--trace", str(trace), "--json", str(kept)]
    assert main(["bench", *options, "--loops", "step", "ping_pong", "--breakdown", *files]) == 0
    out = capsys.readouterr().out
    assert "emulator ping_pong n=2\n  an iteration takes " in out
    assert "  wait for emulator" in out
    events = json.loads(trace.read_text())["traceEvents"]
    assert {1, 2} == {event["pid"] for event in events}
    assert {"loop", "emulator", "emulator 1", "emulator 2"} == {
        event["args"]["name"] for event in events if event["name"] == "thread_name"
    }
    cells = json.loads(kept.read_text())["cells"]
    assert [cell["breakdown"]["iterations"] for cell in cells] == [20, 40]
    assert not any("trace" in cell for cell in cells)


@pytest.mark.parametrize(
    ("options", "message"),
    [(["--trace", "t.json"], "--trace needs --breakdown"), (["--breakdown", "--trace", "/no/t.json"], "no folder /no")],
)
def test_bad_trace_options_are_refused(capsys, options, message):
    """Before anything runs."""
    assert main(["bench", *options]) == 2
    assert message in capsys.readouterr().err


def test_without_a_recorder_nothing_is_between_loop_and_envs():
    """A cell that is measured runs the plain objects; only its breakdown runs timed ones."""
    cell = Cell("emulator", "step", 2, Protocol("tiny", reps=1, iterations=4, warmup=2), device="cpu", backend="fixed")
    with open_loop(cell) as (loop, agent, _):
        assert (type(loop.envs), loop.agent) == (CheckedEnvs, agent)
    with open_loop(cell, Recorder()) as (loop, agent, _):
        assert (type(loop.envs), type(loop.agent)) == (TimedEnvs, TimedAgent)
