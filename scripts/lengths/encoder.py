#!/usr/bin/python3
"""Trains three small text encoders and writes them as ONNX models: which language is a piece of source code written in?

The texts are the sources that this machine has: Go's library, Python's, C headers, scripts of node_modules and shell
scripts. A tenth of the files is held out; accuracies are of those. Needs torch (Debian: python3-torch).

    scripts/lengths/encoder.py OUT    # some ten minutes on one core

OUT/NAME/1/model.onnx takes input_ids and attention_mask, both INT64 [items, length], and gives logits; OUT/accuracy has
what was measured, a line for each model.
"""
import glob
import math
import os
import random
import sys

import torch
from torch import nn

SEED, LONGEST = 1, 512
SOURCES = {
    "go": ["/usr/local/go/src/**/*.go"],
    "python": ["/usr/lib/python3*/**/*.py"],
    "c": ["/usr/include/**/*.h"],
    "javascript": ["node_modules/**/*.js"],
    "shell": ["scripts/*.sh", "/etc/init.d/*", "/usr/bin/*.sh", "/usr/share/**/*.sh"],
}
LADDER = {"tiny": (32, 1), "small": (64, 2), "large": (96, 3)}  # width and layers


class Layer(nn.Module):
    def __init__(self, width, heads=4):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x, hidden):
        items, length, width = x.shape
        q, k, v = (
            t.reshape(items, length, self.heads, width // self.heads).transpose(1, 2)
            for t in self.qkv(self.norm1(x)).chunk(3, dim=2)
        )
        scores = q @ k.transpose(2, 3) / math.sqrt(width // self.heads) + hidden
        x = x + self.out((torch.softmax(scores, dim=3) @ v).transpose(1, 2).reshape(items, length, width))
        return x + self.narrow(torch.relu(self.wide(self.norm2(x))))


class Encoder(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.bytes = nn.Embedding(256, width)
        self.places = nn.Parameter(torch.randn(LONGEST, width) * 0.02)
        self.layers = nn.ModuleList(Layer(width) for _ in range(layers))
        self.classes = nn.Linear(width, len(SOURCES))

    def forward(self, input_ids, attention_mask):
        there = attention_mask.to(torch.float32)
        hidden = ((1 - there) * -1e4).unsqueeze(1).unsqueeze(1)
        x = self.bytes(input_ids) + self.places[: input_ids.shape[1]]
        for layer in self.layers:
            x = layer(x, hidden)
        there = there.unsqueeze(2)
        return self.classes((x * there).sum(1) / there.sum(1))


def read():
    """Returns the texts of each language, learned from and held out."""
    train, held = [], []
    for k, patterns in enumerate(SOURCES.values()):
        names = sorted({n for p in patterns for n in glob.glob(p, recursive=True) if os.path.isfile(n)})
        random.Random(SEED).shuffle(names)
        texts = [open(n, "rb").read(1 << 16) for n in names[:600]]
        texts = [t for t in texts if len(t) > 64]
        cut = max(1, len(texts) // 10)
        held.append(texts[:cut])
        train.append(texts[cut:])
    return train, held


def draw(rng):
    """Draws the length of a piece."""
    return min(max(int(rng.lognormvariate(4, 0.8)), 8), LONGEST)


def batch(texts, items, rng, one):
    """Draws pieces of one length, or of lengths of their own, padded to the longest."""
    pieces, labels, length = [], [], draw(rng)
    for _ in range(items):
        k = rng.randrange(len(texts))
        t = rng.choice(texts[k])
        n = min(length if one else draw(rng), len(t))
        at = rng.randrange(len(t) - n + 1)
        pieces.append(t[at : at + n])
        labels.append(k)
    longest = max(map(len, pieces))
    ids = torch.tensor([list(p) + [0] * (longest - len(p)) for p in pieces])
    mask = torch.tensor([[1] * len(p) + [0] * (longest - len(p)) for p in pieces])
    return ids, mask, torch.tensor(labels)


def main(out):
    torch.manual_seed(SEED)
    train, held = read()
    lines = []
    for name, (width, layers) in LADDER.items():
        model, rng = Encoder(width, layers), random.Random(SEED)
        rate = torch.optim.AdamW(model.parameters(), lr=2e-3 if width < 96 else 1e-3)
        steps = 900
        slope = torch.optim.lr_scheduler.OneCycleLR(rate, rate.param_groups[0]["lr"], steps)
        for step in range(steps):
            ids, mask, labels = batch(train, 32, rng, True)
            loss = nn.functional.cross_entropy(model(ids, mask), labels)
            rate.zero_grad()
            loss.backward()
            rate.step()
            slope.step()
            if step % 100 == 0:
                print(f"{name}: step {step} of {steps}, loss {loss.item():.3f}", file=sys.stderr)
        model.eval()
        rng, right, all_ = random.Random(SEED + 1), 0, 0
        with torch.no_grad():
            for _ in range(60):
                ids, mask, labels = batch(held, 32, rng, False)
                right += int((model(ids, mask).argmax(1) == labels).sum())
                all_ += len(labels)
        lines.append(f"{name} {right / all_:.4f}")
        print(f"{name}: {100 * right / all_:.2f} % of {all_} pieces of files that it was not taught", file=sys.stderr)
        path = os.path.join(out, name, "1", "model.onnx")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        ids, mask, _ = batch(train, 2, rng, False)
        open_ = {0: "items", 1: "length"}
        torch.onnx.export(
            model, (ids, mask), path, input_names=["input_ids", "attention_mask"], output_names=["logits"],
            dynamic_axes={"input_ids": open_, "attention_mask": open_, "logits": {0: "items"}}, opset_version=14,
        )
    with open(os.path.join(out, "accuracy"), "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
