"""Throughput of Atari reinforcement-learning loops across releases of ale-py and torch."""
