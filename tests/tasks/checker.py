"""Re-derives examples of the anchor task in plain Python, from the plain values of a task alone."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np

PAPER = {1: 5, 2: 1, 3: -2, 4: -8}
GROUPS = [("12", 4), ("13", 1), ("14", -5), ("23", 5), ("24", -9), ("34", -6)]


class Checker:
    """What one task's sequences and answers must be."""

    def __init__(self, task: Mapping[str, Any]) -> None:
        self.task = task
        self.k: int = task["n_anchors"]
        self.maps = dict(zip(task["anchors"], task["maps"], strict=True))
        self.held_out = [tuple(pair) for pair in [*task["unseen"], *task["probe"]]]
        self.exceptions: dict[tuple[int, ...], Any] = {
            tuple(int(part) for part in name.split(",")): answer
            for name, answer in task["overrides"].items()
        }
        for name, shift in GROUPS[: task["random_groups"]]:
            first, second = int(name[0]), int(name[1])
            self.exceptions[first, second] = shift
            self.exceptions[second, first] = shift
        self.pairs = list(product(task["anchors"], repeat=self.k))
        rule = task["split_modulus"]
        n_positions = task["length"] - self.k
        self.modulus = {"code": task["length"], "paper": n_positions}.get(rule, rule)

    @staticmethod
    def image(found: Any, x: int) -> int:
        if isinstance(found, int):
            return x + found
        return next(image for value, image in found if value == x)

    def composed(self, key: int, pair: tuple[int, ...]) -> int:
        for anchor in pair:
            key = self.image(self.maps[anchor], key)
        return key

    def target(self, key: int, pair: tuple[int, ...]) -> int:
        if pair in self.exceptions:
            return self.image(self.exceptions[pair], key)
        return self.composed(key, pair)

    def mirrored(self, key: int, pair: tuple[int, ...]) -> int:
        reverse = pair[::-1]
        if pair not in self.held_out or reverse in self.held_out:
            return -1
        answer = self.target(key, reverse)
        return -1 if answer == self.composed(key, pair) else answer

    def is_test(self, key: int, position: int) -> bool:
        return key % self.modulus == position

    def read(self, tokens: list[int]) -> tuple[int, int, tuple[int, ...]]:
        """Return key, its position and the anchors; everything else must be noise."""
        task = self.task
        assert len(tokens) == task["length"]
        at = [index for index, token in enumerate(tokens) if token in task["anchors"]]
        assert len(at) == self.k
        assert at == list(range(at[0], at[0] + self.k)), "anchors are not adjacent"
        position = at[0] - 1
        assert position >= 0
        for index, token in enumerate(tokens):
            if index == position:
                assert task["key_low"] <= token <= task["key_high"]
            elif index not in at:
                assert task["noise_low"] <= token <= task["noise_high"]
        return tokens[position], position, tuple(tokens[index] for index in at)

    def training(self, tokens: np.ndarray, targets: np.ndarray) -> None:
        """Check training examples: seen pairs, training-type keys, designated answers."""
        for row, target in zip(tokens.tolist(), targets.tolist(), strict=True):
            key, position, pair = self.read(row)
            assert pair not in self.held_out
            assert not self.is_test(key, position)
            assert target == self.target(key, pair)
            assert 0 <= target < self.task["vocabulary"]

    def split(self, split: Any) -> None:
        """Check an evaluation split: pairs and keys of its kind, answers, columns."""
        mirrors = [pair[::-1] for pair in self.held_out]
        rows = zip(
            split.tokens.tolist(),
            split.targets.tolist(),
            split.candidates["composed"].tolist(),
            split.candidates["mirrored"].tolist(),
            split.columns["key"].tolist(),
            split.columns["position"].tolist(),
            split.columns["pair"].tolist(),
            strict=True,
        )
        for tokens, target, composed, mirrored, key_, position_, pair_ in rows:
            key, position, pair = self.read(tokens)
            assert (key, position, pair) == (key_, position_, self.pairs[pair_])
            assert target == self.target(key, pair)
            assert composed == self.composed(key, pair)
            assert mirrored == self.mirrored(key, pair)
            assert self.is_test(key, position) == (split.name in ("seen", "unseen_test_keys"))
            assert (pair in self.held_out) == split.name.startswith("unseen")
            if split.name == "mirror":
                assert pair in mirrors
