"""Tells a change from noise: a CUSUM over answers that either passed or failed."""

from __future__ import annotations

import math


class Score:
    """Evidence that the share of failures rose from `noise` by `step`; never below zero.

    With q the noise and d the step, a failure adds ln((q + d) / q), a pass adds
    ln((1 - q - d) / (1 - q)): a false alarm at a threshold of h comes about once in exp(h) answers.

    Source: E. S. Page, "Continuous Inspection Schemes", Biometrika 41 (1954).
    """

    __slots__ = ("_fail", "_pass", "noise", "step", "value")

    def __init__(self, *, noise: float, step: float) -> None:
        self.value = 0.0
        self.step = step
        self.learn(noise)

    def learn(self, noise: float) -> None:
        """Take *noise*, a share in (0, 1 - step), for the share that means nothing."""
        self.noise = noise
        self._fail = math.log((noise + self.step) / noise)
        self._pass = math.log((1.0 - noise - self.step) / (1.0 - noise))
        self.value = 0.0

    def passed(self) -> None:
        """Note an answer that passed."""
        if self.value:
            self.value = max(0.0, self.value + self._pass)

    def failed(self) -> float:
        """Note a failure; the score after it."""
        self.value += self._fail
        return self.value

    def clear(self) -> None:
        """Forget the evidence, keep what is known of the noise."""
        self.value = 0.0
