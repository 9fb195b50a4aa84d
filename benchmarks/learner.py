"""The learner alone: the limit that no emulator can pass."""


class LearnerOnly:
    """How many env-steps/s would the DQN loop reach if the emulator took no time?

    Everything but the emulator: the same tensors crossing the bus, the same updates, on fixed pictures. Outside
    the clock: compilation, the first replay fill.
    """

    params = (["step", "send_recv", "double_buffer"], [1, 2, 4, 8, 16, 32, 64, 128, 256])
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

        return suite.measure_cell("dqn", loop, num_envs, backend="fixed")
