"""Decisions that follow from forecasts; `__init__.pyi` lists the names."""

from calibration._lazy import find_lazily as _find_lazily

__all__, __getattr__, __dir__ = _find_lazily(__name__)
