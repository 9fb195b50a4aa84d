"""The emulator alone: the limit that no learner can pass."""


class EmulatorOnly:
    """How many env-steps/s does the vector env give when nothing is learnt?

    Actions come from a fixed table and are sent as fast as they are taken. Outside the clock: opening the envs.
    """

    params = (
        ["step", "send_recv", "torch_ops", "half_batches", "ping_pong", "quarter_batches"],
        [1, 2, 4, 8, 16, 32, 64, 128, 256],
    )
    param_names = ("loop", "num_envs")
    unit = "env-steps/s"
    version = "1-6d71051c"
    timeout = 3600

    def setup(self, loop, num_envs):
        """Skip, with the reason, where the release or the protocol has no such cell."""
        from ale_velocity import suite

        suite.require(num_envs)

    def track_env_steps_per_second(self, loop, num_envs):
        """Env-steps/s of each window."""
        from ale_velocity import suite

        return suite.measure_cell("emulator", loop, num_envs)

    def track_env_steps_per_cpu_second(self, loop, num_envs):
        """Env-steps of each window for a second of CPU time, from the same run."""
        from ale_velocity import suite

        return suite.measure_cell_cpu("emulator", loop, num_envs)

    track_env_steps_per_cpu_second.unit = "env-steps/CPU-s"
