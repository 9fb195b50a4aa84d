"""The convolutional trunk of Mnih et al. 2015, shared by all agents' networks."""

from __future__ import annotations

from torch import nn

FEATURES = 512


def nature_layers() -> list[nn.Module]:
    """Return the layers from pixels `(rows, 4, 84, 84)` in [0, 1] to `(rows, FEATURES)`."""
    return [
        nn.Conv2d(4, 32, kernel_size=8, stride=4),
        nn.ReLU(),
        nn.Conv2d(32, 64, kernel_size=4, stride=2),
        nn.ReLU(),
        nn.Conv2d(64, 64, kernel_size=3, stride=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(3136, FEATURES),
        nn.ReLU(),
    ]
