"""DQN training: frequent updates on small minibatches."""


class DqnTraining:
    """How many env-steps/s does a DQN training loop reach, and what does async send/recv add to it?

    Outside the clock: opening the envs, compilation, the first replay fill.
    """

    params = (["step", "send_recv", "torch_ops", "double_buffer"], [1, 2, 4, 8, 16, 32, 64, 128, 256])
    param_names = ("loop", "num_envs")
    unit = "env-steps/s"
    version = "2-6d71051c"
    timeout = 3600

    def setup(self, loop, num_envs):
        """Skip, with the reason, where the release or the protocol has no such cell."""
        from ale_velocity import suite

        suite.require(num_envs)

    def track_env_steps_per_second(self, loop, num_envs):
        """Env-steps/s of each window."""
        from ale_velocity import suite

        return suite.measure_cell("dqn", loop, num_envs)

    def track_env_steps_per_cpu_second(self, loop, num_envs):
        """Env-steps of each window for a second of CPU time, from the same run."""
        from ale_velocity import suite

        return suite.measure_cell_cpu("dqn", loop, num_envs)

    track_env_steps_per_cpu_second.unit = "env-steps/CPU-s"


class DqnFixedReplayRatio:
    """The same with one update every 4 env-steps, whatever the env count: how far does learning as often carry?

    Not to be mixed with `DqnTraining`, whose updates an env-step fall with the env count. Outside the clock:
    opening the envs, compilation, the first replay fill.
    """

    params = (["step", "send_recv", "torch_ops", "double_buffer"], [1, 2, 4, 8, 16, 32, 64, 128, 256])
    param_names = ("loop", "num_envs")
    unit = "env-steps/s"
    version = "2-6d71051c"
    timeout = 3600

    def setup(self, loop, num_envs):
        """Skip, with the reason, where the release or the protocol has no such cell."""
        from ale_velocity import suite

        suite.require(num_envs)

    def track_env_steps_per_second(self, loop, num_envs):
        """Env-steps/s of each window."""
        from ale_velocity import suite

        return suite.measure_cell("dqn_fixed_ratio", loop, num_envs)


class DqnTrainingGraphed:
    """The work of `DqnTraining` with launches, allocations and waits taken out by CUDA graphs: what is left to gain?

    n/a without CUDA; torch has one CPU thread. Outside the clock: opening the envs, captures, the first replay fill.
    """

    params = (
        ["step", "send_recv", "torch_ops", "double_buffer", "quarter_batches"],
        [1, 2, 4, 8, 16, 32, 64, 128, 256],
    )
    param_names = ("loop", "num_envs")
    unit = "env-steps/s"
    version = "3-6d71051c"
    timeout = 3600

    def setup(self, loop, num_envs):
        """Skip, with the reason, where the release or the protocol has no such cell."""
        from ale_velocity import suite

        suite.require(num_envs)

    def track_env_steps_per_second(self, loop, num_envs):
        """Env-steps/s of each window."""
        from ale_velocity import suite

        return suite.measure_cell("dqn", loop, num_envs, learner="graphed")
