"""Networks of a few thousand weights, for trying the measurement where nothing large fits: in tests."""

from __future__ import annotations

from typing import Dict

from torch import nn

from networks import Encoder, Network, conv

NETWORKS: Dict[str, Network] = {
    "small-picture": Network(
        lambda: nn.Sequential(conv(3, 8, 3, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10)),
        "picture", 32, 0.5, "none: it was never trained",
    ),
    "wide-picture": Network(
        lambda: nn.Sequential(conv(3, 64, 3, 2), conv(64, 64), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)),
        "picture", 32, 0.6, "none: it was never trained",
    ),
    "small-text": Network(lambda: Encoder(1, 64, 16), "text", 16, 0.5, "none: it was never trained"),
}
