"""Calibrators side by side on held-out rows, of two classes or more.

Above the rooms whose calibrators it compares: `compare` scores them, `comparison` is
what it returns, `menus` names what is compared, `held_out` has the forecasts.
"""
