"""What does our measurement cost around the bare loop? (Expected: under 0.5% at one env.)

    python tools/measure_overhead.py [--pairs 40] [--iterations 500] [--num-envs 1]

One process, one vector env; stretches of the bare loop and of a measured window, with its checks of every answer,
alternate, the order flipped each pair, and the ratio of their times is given with its 95% interval.
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np

from ale_velocity import envs
from ale_velocity.agents import make_agent
from ale_velocity.checked import CheckedEnvs
from ale_velocity.loops.step import StepLoop
from ale_velocity.measure import time_window
from ale_velocity.stats import mean_interval


def main() -> None:
    """Alternate the two and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--iterations", type=int, default=500)
    parser.add_argument("--num-envs", type=int, default=1)
    arguments = parser.parse_args()

    vector_env = envs.open_vector_env("pong", arguments.num_envs, envs.emulator_threads(arguments.num_envs))
    num_actions = int(vector_env.single_action_space.n)
    agent = make_agent("emulator", num_envs=arguments.num_envs, num_actions=num_actions, device="cpu")
    loop = StepLoop(CheckedEnvs(vector_env, arguments.num_envs, arguments.num_envs), agent, envs.SEED)
    table = np.random.default_rng(1).integers(num_actions, size=(1024, arguments.num_envs), dtype=np.int64)
    rows = list(table)

    def bare() -> float:
        started = time.perf_counter()
        for iteration in range(arguments.iterations):
            vector_env.step(rows[iteration % 1024])
        return time.perf_counter() - started

    def measured() -> float:
        return time_window(loop.run, arguments.iterations, drain=agent.drain, clock=time.perf_counter).elapsed_s

    bare(), measured()
    log_ratios = []
    for pair in range(arguments.pairs):
        order = (bare, measured) if pair % 2 == 0 else (measured, bare)
        elapsed_s = {run: run() for run in order}
        log_ratios.append(math.log(elapsed_s[measured] / elapsed_s[bare]))
    interval = mean_interval(log_ratios)
    low, middle, high = ((math.exp(value) - 1) * 100 for value in (interval.low, interval.mean, interval.high))
    print(f"measured over bare: {middle:+.2f}% (95% interval {low:+.2f}% to {high:+.2f}%), {arguments.pairs} pairs")


if __name__ == "__main__":
    main()
