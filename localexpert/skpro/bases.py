"""skpro's base classes, or what stands for them where skpro is not installed.

With it the room can be imported anywhere (as tests and documentation do), and only
making an object needs skpro.
"""

from __future__ import annotations

from typing import Any

__all__ = ["BaseDistribution", "BaseProbaRegressor"]

_cause: ModuleNotFoundError | None = None


class _NeedsSkpro:
    """A base class without objects of its own."""

    def __init__(self, **_: Any) -> None:
        msg = f"`{type(self).__name__}` needs skpro: pip install 'localexpert[skpro]'."
        raise ModuleNotFoundError(msg, name="skpro") from _cause


try:
    from skpro.distributions.base import BaseDistribution
    from skpro.regression.base import BaseProbaRegressor
except ModuleNotFoundError as error:
    _cause = error
    BaseDistribution = BaseProbaRegressor = _NeedsSkpro
