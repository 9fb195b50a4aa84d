"""How do loops compare, when windows of one and the other alternate in one process?

    python tools/in_turn.py dqn:step dqn:send_recv                                  what async adds to DQN
    python tools/in_turn.py emulator:half_batches dqn:half_batches:graphed --counts 16      how far from the limit
    python tools/in_turn.py emulator:step dqn:step --counts 2 --tiny                a smoke test

A cell is AGENT:LOOP or AGENT:LOOP:LEARNER. All stand side by side in one process, and each round takes a window of
every cell, back and forth, so that what disturbs the machine disturbs all; ratios are those of a round, to the first
cell. What differs between processes is not in the intervals: run it again for that.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from ale_velocity.agents import AGENTS, LEARNERS
from ale_velocity.cell import Cell, open_loop, write_json
from ale_velocity.errors import VelocityError
from ale_velocity.loops import LOOPS
from ale_velocity.measure import Protocol, time_window, warm_up
from ale_velocity.stats import compare_pairs, mean_interval

if TYPE_CHECKING:
    from ale_velocity.agents import Agent
    from ale_velocity.loops import Loop

WARM_UP = 64
ENV_STEPS = 8000  # of a window: about half a second on an H200 with 16 cores
MOST_ROUNDS = 500


def main() -> int:
    """Measure each count, and print the rates and ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cells", nargs="+", metavar="AGENT:LOOP[:LEARNER]", help="the first is what others are held to")
    parser.add_argument("--counts", nargs="+", type=int, default=[16, 64], metavar="N", help="env counts")
    parser.add_argument("--windows", type=int, default=12, metavar="N", help="of each cell (default: %(default)s)")
    parser.add_argument("--env-steps", type=int, default=ENV_STEPS, metavar="N", help="of a window, about")
    parser.add_argument("--tiny", action="store_true", help="a few env-steps")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep all windows")
    arguments = parser.parse_args()
    results = []
    for num_envs in arguments.counts:
        rounds = 8 if arguments.tiny else min(math.ceil(arguments.env_steps / num_envs), MOST_ROUNDS)
        protocol = Protocol("in turn", 2 if arguments.tiny else arguments.windows, rounds, WARM_UP)
        rates = measured([cell(name, num_envs, protocol) for name in arguments.cells])
        results.append({"num_envs": num_envs, "rates": dict(zip(arguments.cells, rates, strict=True))})
        print("\n".join(rows(results[-1])), flush=True)
        if arguments.json:
            write_json(arguments.json, results)
    return 0


def cell(name: str, num_envs: int, protocol: Protocol) -> Cell:
    """Return the cell that AGENT:LOOP[:LEARNER] names."""
    agent, loop, learner = (*name.split(":"), "eager")[:3] if ":" in name else (name, "", "eager")
    for kind, given, known in (("agent", agent, AGENTS), ("loop", loop, LOOPS), ("learner", learner, LEARNERS)):
        if given not in known:
            raise SystemExit(f"in_turn.py: {name!r} names no {kind} of {', '.join(known)}: give AGENT:LOOP[:LEARNER]")
    return Cell(agent, loop, num_envs, protocol, learner=learner)


def measured(cells: list[Cell]) -> list[list[float]]:
    """Open all cells, and return the env-steps/s of each one's windows."""
    # A cell in a process of its own has one shape and is compiled for it; here the second would be for all sizes.
    torch._dynamo.config.automatic_dynamic_shapes = False  # noqa: SLF001 (no public name)
    rates: list[list[float]] = [[] for _ in cells]
    with contextlib.ExitStack() as stack:
        opened = [ready(one, stack) for one in cells]
        for number in range(cells[0].protocol.reps):
            turn = range(len(cells))
            for place in turn if number % 2 == 0 else reversed(turn):
                loop, agent = opened[place]
                rates[place].append(window(loop, agent, cells[place]))
        for loop, _ in opened:
            loop.close()
    return rates


def ready(one: Cell, stack: contextlib.ExitStack) -> tuple[Loop, Agent]:
    """Open and warm up a cell."""
    loop, agent, _ = stack.enter_context(open_loop(one))
    warm_up(loop, agent, one.protocol.warmup_rounds(agent.rollout) * loop.batches)
    return loop, agent


def window(loop: Loop, agent: Agent, one: Cell) -> float:
    """Run a window and return its env-steps/s."""
    rounds = one.protocol.window_rounds(one.num_envs, agent.rollout)
    timed = time_window(loop.run, rounds * loop.batches, drain=agent.drain, clock=time.perf_counter)
    return round(timed.env_steps_per_second, 1)


def rows(result: dict[str, Any]) -> list[str]:
    """Return one line a cell: its rate, and its ratio to the first."""
    names = list(result["rates"])
    lines = []
    for name, rates in result["rates"].items():
        rate = mean_interval(rates)
        line = f"n={result['num_envs']:<4} {name:<28} {rate.mean:>8,.0f} ± {rate.half_width:>6,.0f} env-steps/s"
        if name != names[0]:
            ratio = compare_pairs(result["rates"][names[0]], rates)
            line += f"  {ratio.ratio:.3f} of {names[0]} (95% interval {ratio.low:.3f} to {ratio.high:.3f})"
        lines.append(line)
    return lines


if __name__ == "__main__":
    try:
        sys.exit(main())
    except VelocityError as error:
        sys.exit(f"in_turn.py: {error}")
