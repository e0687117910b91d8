"""The measured networks as a class that sluice serves (`variants[].python`, docs/python.md), for the live part.

It runs on the accelerator that its process is given, and on the processor where it is given none.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Dict

import numpy as np
import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import networks  # noqa: E402
import tiny  # noqa: E402

ALL = {**networks.NETWORKS, **tiny.NETWORKS}


class Pictures:
    """One of the networks for pictures, by the option ``network``. A pixel is a byte."""

    inputs = {"picture": "UINT8[-1,3,-1,-1]"}
    outputs = {"class": "INT64[-1]"}
    max_batch = 64

    def load(self, config: Any) -> None:
        network = ALL[config.options["network"]]
        self.size = network.size
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        torch.manual_seed(1)
        self.module = network.build().eval().to(self.device)
        if self.device == "cuda":
            self.module = self.module.half()
        else:
            torch.set_num_threads(int(config.get("cores") or 1))

    def sample(self, rows: int) -> Dict[str, np.ndarray]:
        return {"picture": np.zeros((rows, 3, self.size, self.size), np.uint8)}

    def infer(self, inputs: Dict[str, np.ndarray]) -> Dict[str, np.ndarray]:
        with torch.inference_mode():
            x = torch.from_numpy(np.ascontiguousarray(inputs["picture"])).to(self.device)
            y = self.module((x.half() if self.device == "cuda" else x.float()) / 255)
            return {"class": y.argmax(1).cpu().numpy()}
