"""Overlap efficiency: a loop against the lower of its two ceilings."""

from __future__ import annotations

import json

import torch

from ale_velocity import overlap
from ale_velocity.agents import torch_device
from ale_velocity.cell import Cell, CellResult
from ale_velocity.measure import Measurement, Protocol, Window
from ale_velocity.overlap import Overlap, run_overlap

TINY = Protocol("tiny", reps=2, iterations=8, warmup=4)


def result(*rates):
    windows = tuple(Window(rows=rate, elapsed_s=1.0, cpu_s=1.0) for rate in rates)
    return CellResult(Cell("dqn", "step", 4, TINY), Measurement(windows, 0.1, 4, ()), {})


def test_percent_of_the_lower_ceiling_by_hand():
    """The emulator gives 1000 in the mean, the learner 4000: 750 and 500 are 75 and 50 percent."""
    measured = Overlap(emulator=result(900, 1100), learner=result(4000, 4000), loop=result(750, 500))
    assert measured.ceiling == 1000
    assert measured.samples == [75.0, 50.0]
    assert measured.sequential == 800


def test_the_three_cells_differ_in_what_is_left_out(monkeypatch):
    """Nothing learnt; no emulator; both. The loop is the same in all."""
    cells = []
    monkeypatch.setattr(overlap, "run_cell", lambda cell, _: cells.append(cell) or result(100))
    measured = run_overlap(Cell("dqn", "ping_pong", 4, TINY, learner="graphed"))
    assert [(cell.agent, cell.backend) for cell in cells] == [("emulator", "ale"), ("dqn", "fixed"), ("dqn", "ale")]
    assert {("ping_pong", "graphed", 4)} == {(cell.loop, cell.learner, cell.num_envs) for cell in cells}
    assert {"samples", "emulator", "learner", "loop"} == json.loads(json.dumps(measured.to_json())).keys()


def test_overlap_of_a_real_loop(monkeypatch):
    """All three are measured in this process; how well they overlap here is not the test's to say."""
    monkeypatch.setattr(torch, "compile", lambda function, **_: function)  # half a minute, and not what is tested
    monkeypatch.setattr(torch.compiler, "cudagraph_mark_step_begin", lambda: None)
    monkeypatch.setattr(torch_device, "num_compiled_graphs", lambda: 1)
    measured = run_overlap(Cell("dqn", "send_recv", 4, TINY, device="cpu", buffer_cap=64))
    assert len(measured.samples) == 2
    assert all(sample > 0 for sample in measured.samples)
