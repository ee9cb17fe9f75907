"""Targets and weights of all kinds, drawn at random."""

import numpy as np


def draw_target(rng, signal):
    """Return a target of some kind, and bounds that hold it or None."""
    n = len(signal)
    noise = signal + rng.normal(size=n)
    names = list(TARGETS)
    name = names[rng.integers(len(names))]
    y = np.asarray(TARGETS[name](rng, noise), dtype=np.float64)
    bounds = None
    if name == "bounded":
        bounds = (0.0, 1.0)
    elif rng.uniform() < 0.2:
        room = 0.1 * np.ptp(y) + 1e-9 * np.abs(y).max() + 1e-300
        bounds = (float(y.min() - room), None)
    return y, bounds


TARGETS = {
    "smooth": lambda _, z: z,
    "coarse": lambda _, z: np.round(z, 1),
    "whole numbers": lambda _, z: np.round(2.0 * z),
    "counts": lambda rng, z: rng.poisson(np.exp(np.clip(z, -2.0, 2.0))),
    "yes or no": lambda _, z: z > 0.0,
    "zeros and a rest": lambda _, z: np.maximum(z, 0.0),
    "claims": lambda rng, z: np.where(z > 1.0, rng.lognormal(5.0, 1.0, len(z)), 0.0),
    "two atoms": lambda _, z: np.clip(z, -0.7, 0.7),
    "bounded": lambda _, z: 1.0 / (1.0 + np.exp(-z)),
    "heavy tails": lambda rng, z: z + rng.standard_cauchy(len(z)),
    "skewed": lambda _, z: np.exp(3.0 * z),
    "one far value": lambda _, z: np.where(z == z.max(), 1e12, z),
    "fill values": lambda _, z: np.where(np.argsort(z) < 2, 9.96921e36, z),
    "neighbours": lambda rng, z: rng.choice([0.3, 0.1 + 0.2, 0.6, 0.1 * 6], len(z)),
    "sums": lambda rng, z: np.cumsum(rng.choice([0.0, 0.1], len(z))),
    "an offset": lambda _, z: 1e9 + z,
    "huge": lambda _, z: 1e60 * z,
    "tiny": lambda _, z: 1e-60 * z,
    "too huge": lambda _, z: 1e200 * z,
    "too tiny": lambda _, z: 1e-200 * z,
    "constant": lambda _, z: np.full(len(z), 0.1),
    "nearly constant": lambda _, z: np.where(z == z.max(), 1.0, 0.1),
}


def draw_weight(rng, n):
    """Return weights that some of all rows have, or None."""
    kinds = [
        None,
        None,
        rng.integers(0, 4, n).astype(float),
        rng.uniform(0.1, 3.0, n),
        np.where(rng.uniform(size=n) < 0.3, 0.0, 1.0),
        10.0 ** rng.integers(-3, 4, n),
        1e-9 * rng.uniform(0.5, 2.0, n),
    ]
    weight = kinds[rng.integers(len(kinds))]
    return None if weight is None or not weight.any() else weight
