"""`Views`: a table as the families of regressors read it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

from calibration.typing import Float64Array
from localexpert.data.dense_inputs import DenseInputs
from localexpert.data.tables import TableEncoder

View: TypeAlias = Literal["raw", "table", "inputs"]


@dataclass
class Views:
    """Rows as given, as numbers with gaps, and as inputs of linear models and nets.

    Parameters
    ----------
    raw : array or data frame of shape (n, p)
    encoder : TableEncoder
    dense : DenseInputs, optional
        That of the training rows; learnt from `raw` if None.
    """

    raw: Any
    encoder: TableEncoder
    dense: DenseInputs | None = None

    @cached_property
    def table(self) -> Float64Array:
        """Numbers, codes of categories, and NaN where missing, shape (n, p)."""
        return self.encoder.encode(self.raw)

    @cached_property
    def inputs(self) -> Float64Array:
        """Numbers on one scale, indicators, and no gaps, shape (n, q)."""
        if self.dense is None:
            self.dense = DenseInputs.learn(self.table, self.encoder.categories)
        return self.dense.transform(self.table)

    def of_rows(self, raw: Any) -> Views:
        """Return the views of other rows."""
        return Views(raw, self.encoder, self.dense)
