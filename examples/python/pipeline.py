"""The mood of a text, with numpy alone: a tokenizer, two models, and a step that makes answers of scores.

The weights are made of a list of words. What matters is the shape of it: text in, tensors between, words out.
"""

import re
import zlib

import numpy as np

WORDS = 4096  # of the vocabulary; words are numbered by a hash
LENGTH = 64  # words of a text that are looked at

GOOD = "good great excellent lovely like love best happy fine nice wonderful brilliant enjoyed warm".split()
BAD = "bad poor awful terrible hate worst sad boring dull cold wrong broken horrible slow".split()
NEGATIONS = "not no never hardly without".split()


def number(word):
    """Returns the number of a word, from 1; 0 is no word."""
    return 1 + zlib.crc32(word.encode()) % (WORDS - 1)


class Tokenizer:
    """Texts to numbers of words."""

    inputs = {"text": "BYTES[-1]"}
    outputs = {"tokens": f"INT32[-1,{LENGTH}]"}

    def sample(self, rows):
        return {"text": np.array([b"not a bad film, and I liked the music very much"] * rows, dtype=object)}

    def infer(self, inputs):
        tokens = np.zeros((len(inputs["text"]), LENGTH), dtype=np.int32)
        for row, text in zip(tokens, inputs["text"]):
            words = re.findall(r"[a-z']+", bytes(text).decode("utf-8", "replace").lower())[:LENGTH]
            row[: len(words)] = [number(w) for w in words]
        return {"tokens": tokens}


class Words:
    """Adds up the moods of words."""

    inputs = {"tokens": f"INT32[-1,{LENGTH}]"}
    outputs = {"score": "FP32[-1]"}

    def load(self, config):
        self.mood = np.zeros(WORDS, dtype=np.float32)
        self.mood[[number(w) for w in GOOD]] = 1
        self.mood[[number(w) for w in BAD]] = -1

    def infer(self, inputs):
        tokens = inputs["tokens"]
        return {"score": self.mood[tokens].sum(axis=1) / np.maximum(1, (tokens > 0).sum(axis=1))}


class Pairs(Words):
    """Looks at two words at a time, so that "not good" is bad, through a layer as a larger model has it."""

    def load(self, config):
        super().load(config)
        self.turns = np.ones(WORDS, dtype=np.float32)
        self.turns[[number(w) for w in NEGATIONS]] = -1
        # A layer that changes nothing and costs what one costs.
        wide = np.random.default_rng(1).normal(size=(LENGTH, 4 * LENGTH)).astype(np.float32)
        self.up, self.down = wide, np.linalg.pinv(wide).astype(np.float32)

    def infer(self, inputs):
        tokens = inputs["tokens"]
        moods = self.mood[tokens]
        moods[:, 1:] *= self.turns[tokens[:, :-1]]
        moods = (moods @ self.up) @ self.down
        return {"score": moods.sum(axis=1) / np.maximum(1, (tokens > 0).sum(axis=1))}


class Answer:
    """Scores to words."""

    inputs = {"score": "FP32[-1]"}
    outputs = {"mood": "BYTES[-1]"}

    def load(self, config):
        self.unsure = float(config.options["unsure"])

    def infer(self, inputs):
        names = np.array([b"bad", b"unsure", b"good"], dtype=object)
        score = inputs["score"]
        return {"mood": names[1 + (score > self.unsure).astype(int) - (score < -self.unsure).astype(int)]}
