"""Tables with columns of all types and gaps of all kinds, targets and weights."""

import datetime as dt
import decimal
import numbers

import numpy as np
import pandas as pd
import polars as pl
import polars.selectors as cs

START = np.datetime64("2020-01-01")
WORDS = np.array(["a", "b", "ü", "", "NA", "1"])


def draw_table(rng, n):
    """Return rows of a container of some kind."""
    kind = rng.integers(4)
    if kind == 0:
        return draw_array(rng, n)
    makers = COLUMNS if kind < 3 else POLARS
    names = [f"x{j}" for j in range(int(rng.integers(1, 4)))]
    columns = {}
    for name in names:
        make = makers[rng.integers(len(makers))]
        columns[name] = make(rng, rng.normal(size=n), rng.uniform(size=n) < 0.15)
    if kind == 3:
        return pl.DataFrame(columns)
    table = pd.DataFrame(columns)
    if rng.uniform() < 0.2:
        table.index = rng.integers(0, 5, n)
    if rng.uniform() < 0.1:
        table.columns = range(table.shape[1])
    return table


def draw_array(rng, n):
    """Return an array of numbers of some type, with gaps where it may have them."""
    X = rng.normal(size=(n, int(rng.integers(1, 4)))) * 10.0 ** rng.integers(-9, 10)
    kinds = [
        lambda: X,
        lambda: np.where(rng.uniform(size=X.shape) < 0.15, np.nan, X),
        lambda: X.astype(np.float32),
        lambda: np.round(X).astype(np.int64),
        lambda: X > 0.0,
        lambda: X.astype(object),
        lambda: np.asfortranarray(X),
        lambda: 1e8 + X,
        lambda: np.round(X) * 0.0,
        lambda: np.full(X.shape, np.nan),
    ]
    return kinds[rng.integers(len(kinds))]()


def holes(values, gaps, hole):
    """Return values as a list, with another in the gaps."""
    return [hole if g else v for v, g in zip(values, gaps, strict=True)]


def floats(_, z, gaps):
    return np.where(gaps, np.nan, z)


def plain(dtype, scale=3.0):
    return lambda _, z, __: (scale * z).astype(dtype)


def nullable(dtype):
    return lambda _, z, gaps: pd.array(holes(np.round(z).tolist(), gaps, pd.NA), dtype)


def flags(dtype):
    return lambda _, z, gaps: pd.array(holes((z > 0.0).tolist(), gaps, pd.NA), dtype)


def words(rng, z, gaps):
    picked = rng.choice(WORDS, len(z)).tolist()
    hole = [None, np.nan, pd.NA][rng.integers(3)]
    return pd.Series(holes(picked, gaps, hole), dtype=object)


def texts(dtype):
    return lambda rng, z, gaps: pd.array(
        holes(rng.choice(WORDS, len(z)).tolist(), gaps, None), dtype
    )


def factor(rng, z, gaps):
    levels = rng.permutation([3, 1, 2]).tolist()
    picked = holes(rng.choice(levels, len(z)).tolist(), gaps, None)
    return pd.Categorical(picked, levels, ordered=bool(rng.integers(2)))


def mixture(rng, z, gaps):
    picked = rng.integers(3, size=len(z))
    values = [("x", 2, (1, 2))[k] for k in picked]
    return pd.Series(holes(values, gaps, None), dtype=object)


def number_objects(rng, z, gaps):
    """Numbers in a column of objects."""
    hole = [None, np.nan, pd.NA][rng.integers(3)]
    return pd.Series(holes(z.tolist(), gaps, hole), dtype=object)


def decimals(_, z, gaps):
    picked = [decimal.Decimal(f"{value:.3f}") for value in z]
    return pd.Series(holes(picked, gaps, None), dtype=object)


def times(_, z, gaps):
    return pd.Series(START + np.round(100.0 * z).astype("m8[D]")).mask(gaps)


def zoned(rng, z, gaps):
    return times(rng, z, gaps).dt.tz_localize("Europe/Berlin")


def spans(_, z, gaps):
    return pd.Series(np.round(1e3 * z).astype("m8[s]")).mask(gaps)


def days(_, z, gaps):
    picked = [dt.date(2020, 1, 1) + dt.timedelta(days=int(9 * value)) for value in z]
    return pd.Series(holes(picked, gaps, None), dtype=object)


def arrow(dtype, scale=10.0):
    return lambda _, z, gaps: pd.array(
        holes(np.round(scale * z).tolist(), gaps, None), dtype
    )


def arrow_times(rng, z, gaps):
    return times(rng, z, gaps).astype("timestamp[ns][pyarrow]")


COLUMNS = [
    floats,
    floats,
    *(plain(dtype) for dtype in ("float32", "float16", "int8", "int64", "bool")),
    *(nullable(dtype) for dtype in ("Int8", "Int64", "Float64", "Float32")),
    *(flags(dtype) for dtype in ("boolean", "bool[pyarrow]")),
    *(texts(dtype) for dtype in ("string", "str", "string[pyarrow]")),
    *(arrow(dtype) for dtype in ("double[pyarrow]", "int64[pyarrow]")),
    words,
    factor,
    mixture,
    number_objects,
    decimals,
    times,
    zoned,
    spans,
    days,
    arrow_times,
    lambda _, z, __: 1e8 + z,
    lambda _, z, __: np.full(len(z), np.nan),
    lambda _, z, __: pd.Series([None] * len(z), dtype=object),
]


def polar(dtype, make):
    """Return a maker of a polars column of a type."""

    def column(rng, z, gaps):
        return pl.Series(holes(make(rng, z), gaps, None), dtype=dtype, strict=False)

    return column


POLARS = [
    *(
        polar(dtype, lambda _, z: np.round(3.0 * z).tolist())
        for dtype in (pl.Float64, pl.Float32, pl.Int8, pl.Int64)
    ),
    polar(pl.UInt16, lambda _, z: np.round(np.abs(z)).tolist()),
    polar(pl.Boolean, lambda _, z: (z > 0.0).tolist()),
    *(
        polar(dtype, lambda rng, z: rng.choice(WORDS, len(z)).tolist())
        for dtype in (pl.String, pl.Categorical, pl.Enum(WORDS.tolist()))
    ),
    polar(pl.Decimal(12, 3), lambda _, z: [decimal.Decimal(f"{v:.3f}") for v in z]),
    polar(
        pl.Date, lambda _, z: [dt.date(2020, 1, 1 + int(9 * abs(v)) % 28) for v in z]
    ),
    polar(
        pl.Datetime,
        lambda _, z: [dt.datetime(2020, 1, 1, int(9 * abs(v)) % 24) for v in z],
    ),
    polar(pl.Null, lambda _, z: [None] * len(z)),
]


def take(X, rows):
    """Return some rows of a container of any kind."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def as_floats(X):
    """Return a table whose numbers, of whatever type, are plain floats."""
    if isinstance(X, np.ndarray):
        return X.astype(np.float64)
    if isinstance(X, pl.DataFrame):
        return X.cast({cs.numeric() | cs.boolean(): pl.Float64})
    wide = X.copy()
    for j in range(X.shape[1]):
        column = X.iloc[:, j]
        known = column.dropna()
        is_object = column.dtype == object and len(known)
        if column.dtype.kind in "biuf" or (is_object and all(map(is_number, known))):
            values = [np.nan if pd.isna(value) else float(value) for value in column]
            wide.isetitem(j, values)
    return wide


def is_number(value):
    return isinstance(value, numbers.Number | decimal.Decimal)


def is_plain(X):
    """Say whether a table holds numbers only, and no gaps: what linear models read."""
    return isinstance(X, np.ndarray) and X.dtype != object and np.isfinite(X).all()


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
