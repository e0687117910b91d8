"""Architectures whose times are measured, with random weights: time does not depend on their values.

Each is as its paper describes it. Accuracies are published ones of trained weights, and labelled with their source; the
networks here have none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Callable, Dict, List, Tuple

import torch
from torch import nn


def conv(i: int, o: int, k: int = 3, stride: int = 1, groups: int = 1, act: bool = True) -> nn.Sequential:
    """A convolution with normalisation and, unless act is off, a rectifier."""
    layers: List[nn.Module] = [nn.Conv2d(i, o, k, stride, k // 2, groups=groups, bias=False), nn.BatchNorm2d(o)]
    return nn.Sequential(*layers, *([nn.ReLU(inplace=True)] if act else []))


class Residual(nn.Module):
    """A block of ResNet (He et al., CVPR 2016): two convolutions, or three with a bottleneck."""

    def __init__(self, i: int, width: int, stride: int, bottleneck: bool) -> None:
        super().__init__()
        o = width * (4 if bottleneck else 1)
        if bottleneck:
            self.body = nn.Sequential(conv(i, width, 1), conv(width, width, 3, stride), conv(width, o, 1, act=False))
        else:
            self.body = nn.Sequential(conv(i, width, 3, stride), conv(width, o, act=False))
        self.skip = nn.Identity() if i == o and stride == 1 else conv(i, o, 1, stride, act=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + self.skip(x))


def resnet(blocks: Tuple[int, ...], bottleneck: bool) -> nn.Module:
    layers: List[nn.Module] = [conv(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)]
    i = 64
    for stage, count in enumerate(blocks):
        width = 64 << stage
        for n in range(count):
            layers.append(Residual(i, width, 2 if n == 0 and stage > 0 else 1, bottleneck))
            i = width * (4 if bottleneck else 1)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(i, 1000))


class Inverted(nn.Module):
    """A block of EfficientNet (Tan and Le, ICML 2019): expand, depthwise, weigh the channels, project."""

    def __init__(self, i: int, o: int, k: int, stride: int, expand: int) -> None:
        super().__init__()
        mid, weigh = i * expand, max(1, i // 4)

        def silu(a: int, b: int, kernel: int, s: int = 1, groups: int = 1) -> nn.Sequential:
            return nn.Sequential(conv(a, b, kernel, s, groups, act=False), nn.SiLU(inplace=True))

        self.expand = silu(i, mid, 1) if expand > 1 else nn.Identity()
        self.depth = silu(mid, mid, k, stride, mid)
        self.weigh = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(mid, weigh, 1), nn.SiLU(), nn.Conv2d(weigh, mid, 1), nn.Sigmoid()
        )
        self.project = conv(mid, o, 1, act=False)
        self.residual = i == o and stride == 1

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.depth(self.expand(x))
        y = self.project(y * self.weigh(y))
        return x + y if self.residual else y


def efficientnet(width: float, depth: float) -> nn.Module:
    def channels(c: int) -> int:
        scaled = max(8, int(c * width + 4) // 8 * 8)
        return scaled + 8 if scaled < 0.9 * c * width else scaled

    i = channels(32)
    layers: List[nn.Module] = [conv(3, i, 3, 2, act=False), nn.SiLU(inplace=True)]
    for expand, c, count, stride, k in (
        (1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5), (6, 192, 4, 2, 5),
        (6, 320, 1, 1, 3),
    ):
        for n in range(math.ceil(count * depth)):
            layers.append(Inverted(i, channels(c), k, stride if n == 0 else 1, expand))
            i = channels(c)
    head = channels(1280)
    layers += [conv(i, head, 1, act=False), nn.SiLU(inplace=True), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(head, 1000))


class Encoder(nn.Module):
    """BERT (Devlin et al., NAACL 2019) for a class of a sequence: an encoder layer is PyTorch's own."""

    def __init__(self, layers: int, width: int, length: int = 128, words: int = 30522) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Parameter(torch.randn(1, length, width) * 0.02)
        self.norm = nn.LayerNorm(width)
        layer = nn.TransformerEncoderLayer(width, max(1, width // 64), 4 * width, 0.0, "gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, layers)
        self.pool, self.classes = nn.Linear(width, width), nn.Linear(width, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.layers(self.norm(self.words(x) + self.places[:, : x.shape[1]]))
        return self.classes(torch.tanh(self.pool(y[:, 0])))


class SSD(nn.Module):
    """SSD300 with VGG-16 (Liu et al., ECCV 2016): 8732 boxes of 21 classes; suppression is not part of it."""

    def __init__(self, classes: int = 21) -> None:
        super().__init__()

        def row(i: int, o: int, n: int, **pool: int) -> List[nn.Module]:
            out: List[nn.Module] = []
            for k in range(n):
                out += [nn.Conv2d(i if k == 0 else o, o, 3, 1, 1), nn.ReLU(inplace=True)]
            return out

        pool = lambda: nn.MaxPool2d(2, 2, ceil_mode=True)  # noqa: E731
        first = [*row(3, 64, 2), pool(), *row(64, 128, 2), pool(), *row(128, 256, 3), pool(), *row(256, 512, 3)]
        second = [pool(), *row(512, 512, 3), nn.MaxPool2d(3, 1, 1), nn.Conv2d(512, 1024, 3, 1, 6, 6), nn.ReLU(),
                  nn.Conv2d(1024, 1024, 1), nn.ReLU()]
        more = lambda i, m, o, s, p: [nn.Conv2d(i, m, 1), nn.ReLU(), nn.Conv2d(m, o, 3, s, p), nn.ReLU()]  # noqa: E731
        parts = [first, second, more(1024, 256, 512, 2, 1), more(512, 128, 256, 2, 1), more(256, 128, 256, 1, 0),
                 more(256, 128, 256, 1, 0)]
        self.parts = nn.ModuleList(nn.Sequential(*p) for p in parts)
        self.heads = nn.ModuleList(
            nn.Conv2d(c, n * (classes + 4), 3, 1, 1)
            for c, n in zip((512, 1024, 512, 256, 256, 256), (4, 6, 6, 6, 4, 4))
        )
        self.row = classes + 4

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = []
        for part, head in zip(self.parts, self.heads):
            x = part(x)
            found.append(head(x).permute(0, 2, 3, 1).reshape(x.shape[0], -1, self.row))
        return torch.cat(found, 1)


class YOLO(nn.Module):
    """YOLOv3 (Redmon and Farhadi, 2018) with Darknet-53: boxes of 80 classes on three grids, without suppression."""

    def __init__(self) -> None:
        super().__init__()

        class Block(nn.Module):
            def __init__(self, c: int) -> None:
                super().__init__()
                self.body = nn.Sequential(conv(c, c // 2, 1), conv(c // 2, c))

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return x + self.body(x)

        self.stem = conv(3, 32)
        self.stages = nn.ModuleList(
            nn.Sequential(conv(32 << n, 64 << n, 3, 2), *(Block(64 << n) for _ in range(count)))
            for n, count in enumerate((1, 2, 8, 8, 4))
        )
        five = lambda i, c: nn.Sequential(  # noqa: E731
            conv(i, c, 1), conv(c, 2 * c), conv(2 * c, c, 1), conv(c, 2 * c), conv(2 * c, c, 1)
        )
        self.necks = nn.ModuleList((five(1024, 512), five(768, 256), five(384, 128)))
        self.ups = nn.ModuleList((conv(512, 256, 1), conv(256, 128, 1)))
        self.heads = nn.ModuleList(nn.Sequential(conv(c, 2 * c), nn.Conv2d(2 * c, 255, 1)) for c in (512, 256, 128))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x, seen = self.stem(x), []
        for stage in self.stages:
            x = stage(x)
            seen.append(x)
        found, y = [], seen[4]
        for n, (neck, head) in enumerate(zip(self.necks, self.heads)):
            if n > 0:
                up = nn.functional.interpolate(self.ups[n - 1](y), scale_factor=2)
                y = torch.cat((up, seen[4 - n]), 1)
            y = neck(y)
            found.append(head(y).flatten(2))
        return torch.cat(found, 2)


@dataclass
class Network:
    """An architecture: how to build it, what it takes, and what its authors publish."""

    build: Callable[[], nn.Module]
    kind: str
    size: int  # of the picture, or length of the sequence
    accuracy: float  # published; of what, says source
    source: str

    def sample(self, batch: int) -> torch.Tensor:
        """Random input for so many items."""
        if self.kind == "text":
            return torch.randint(0, 30522, (batch, self.size))
        return torch.rand(batch, 3, self.size, self.size)


_TOP1 = "ImageNet top-1, torchvision's published weights"
_GLUE = "GLUE, as the authors publish it"
_COCO = "COCO box AP, as published"

NETWORKS: Dict[str, Network] = {
    "resnet18": Network(lambda: resnet((2, 2, 2, 2), False), "picture", 224, 0.6976, _TOP1),
    "resnet34": Network(lambda: resnet((3, 4, 6, 3), False), "picture", 224, 0.7331, _TOP1),
    "resnet50": Network(lambda: resnet((3, 4, 6, 3), True), "picture", 224, 0.7613, _TOP1),
    "resnet101": Network(lambda: resnet((3, 4, 23, 3), True), "picture", 224, 0.7737, _TOP1),
    "resnet152": Network(lambda: resnet((3, 8, 36, 3), True), "picture", 224, 0.7831, _TOP1),
    "efficientnet-b0": Network(lambda: efficientnet(1.0, 1.0), "picture", 224, 0.7769, _TOP1),
    "efficientnet-b2": Network(lambda: efficientnet(1.1, 1.2), "picture", 288, 0.8061, _TOP1),
    "efficientnet-b4": Network(lambda: efficientnet(1.4, 1.8), "picture", 380, 0.8338, _TOP1),
    "efficientnet-b7": Network(lambda: efficientnet(2.0, 3.1), "picture", 600, 0.8412, _TOP1),
    "bert-tiny": Network(lambda: Encoder(2, 128), "text", 128, 0.642, _GLUE),
    "bert-mini": Network(lambda: Encoder(4, 256), "text", 128, 0.658, _GLUE),
    "bert-small": Network(lambda: Encoder(4, 512), "text", 128, 0.712, _GLUE),
    "bert-medium": Network(lambda: Encoder(8, 512), "text", 128, 0.735, _GLUE),
    "bert-base": Network(lambda: Encoder(12, 768), "text", 128, 0.796, _GLUE),
    "bert-large": Network(lambda: Encoder(24, 1024), "text", 128, 0.821, _GLUE),
    "ssd300-vgg16": Network(SSD, "picture", 300, 0.251, _COCO),
    "yolov3-416": Network(YOLO, "picture", 416, 0.310, _COCO),
}
