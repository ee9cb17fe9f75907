"""Labelled rows: strategies of hostile scores, labels and weights."""

import numpy as np
from hypothesis import strategies as st

UNIT = st.one_of(
    st.floats(0.0, 1.0),
    st.sampled_from([0.0, -0.0, 1.0, 0.5, 0.3, 0.1 + 0.2, 5e-324, 1e-300, 1e-16]),
    st.sampled_from([1.0 - 1e-16, np.nextafter(0.5, 1.0), np.nextafter(0.3, 0.0)]),
    st.integers(0, 10).map(lambda k: k / 10.0),
)
REAL = st.one_of(
    st.floats(-40.0, 40.0),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-5, 5).map(float),
    st.sampled_from([1e300, -1e300, 1.7e308, -1.7e308, 5e-324, 1e15, 1e15 + 0.125]),
)
SCORES = {"probability": UNIT, "logit": REAL, "real": REAL}
REPEATS = st.integers(0, 3).map(float)
HOSTILE = st.one_of(
    st.floats(0.0, 10.0),
    st.sampled_from(
        [0.0, 5e-324, 1e-300, 3e-222, 1e-160, 1e-12, 1e12, 1e15, 1e200, 1e300, 1.7e308]
    ),
)


@st.composite
def labelled(draw, scale, weights):
    """Return scores, labels and weights of a few rows."""
    n = draw(st.integers(1, 25))
    several = {"min_size": n, "max_size": n}
    return (
        np.array(draw(st.lists(SCORES[scale], **several))),
        np.array(draw(st.lists(st.integers(0, 1), **several))),
        np.array(draw(st.lists(weights, **several))),
    )
