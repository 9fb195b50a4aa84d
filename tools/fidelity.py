"""How fast are the package's loops against the same loops written straight down?

    python tools/fidelity.py                              `step` and `send_recv` with 1, 16 and 64 envs
    python tools/fidelity.py --counts 2 --tiny            a smoke test

Both loops of a pair stand side by side in one process, and windows of one and the other alternate, so that what
disturbs the machine disturbs both. The ratio is that of adjacent windows.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from pathlib import Path
from typing import Any

import torch

import bare_loop
from ale_velocity.cell import Cell, open_loop, write_json
from ale_velocity.measure import Protocol, time_window, warm_up
from ale_velocity.stats import compare_pairs

LOOPS = ("step", "send_recv")
COUNTS = (1, 16, 64)
WARM_UP = 64
ITERATIONS = 60  # of a window: one to two seconds on two CPU cores, whatever the count


def main() -> int:
    """Compare each loop and count, and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--counts", nargs="+", type=int, default=COUNTS, metavar="N", help="env counts")
    parser.add_argument("--pairs", type=int, default=20, metavar="N", help="pairs of windows (default: %(default)s)")
    parser.add_argument("--tiny", action="store_true", help="a few env-steps")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep all windows")
    arguments = parser.parse_args()
    results = []
    for num_envs in arguments.counts:
        for loop in LOOPS:
            iterations = 4 if arguments.tiny else ITERATIONS
            results.append(
                compared(loop, num_envs, pairs=2 if arguments.tiny else arguments.pairs, iterations=iterations)
            )
            print(row(results[-1]), flush=True)
            if arguments.json:
                write_json(arguments.json, results)
    return 0


def compared(loop: str, num_envs: int, *, pairs: int, iterations: int) -> dict[str, Any]:
    """Run windows of both in turn; return their env-steps/s, and the ratio of ours to the bare loop's."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch._dynamo.reset()  # noqa: SLF001 (a second shape in one process would be compiled for all sizes)
    cell = Cell(
        "dqn", loop, num_envs, Protocol("fidelity", reps=1, iterations=iterations, warmup=WARM_UP), device=device
    )
    rates: dict[str, list[float]] = {"bare": [], "ours": []}
    with open_loop(cell) as (our_loop, agent, num_threads):
        bare = bare_loop.BareLoop(bare_loop.BareDqn(device), loop, num_envs, num_threads)
        with contextlib.closing(bare):
            warm_up(our_loop, agent, WARM_UP)
            bare.run(WARM_UP)
            for number in range(2 * pairs):
                # ABBA: what drifts in a line cancels.
                name = "bare" if number % 4 in {0, 3} else "ours"
                run = bare.run if name == "bare" else our_loop.run
                window = time_window(run, iterations, drain=agent.drain, clock=time.perf_counter)
                rates[name].append(round(window.env_steps_per_second, 1))
        our_loop.close()
    comparison = compare_pairs(rates["bare"], rates["ours"])
    interval = {"ratio": comparison.ratio, "low": comparison.low, "high": comparison.high}
    return {"loop": loop, "num_envs": num_envs, "device": device, **interval, **rates}


def row(result: dict[str, Any]) -> str:
    """One line for people."""
    cell = f"{result['loop']} n={result['num_envs']} ({result['device']})"
    interval = f"95% interval {result['low']:.3f} to {result['high']:.3f}, {len(result['ours'])} pairs of windows"
    return f"fidelity {cell}: {result['ratio']:.3f} of the bare loop ({interval})"


if __name__ == "__main__":
    sys.exit(main())
