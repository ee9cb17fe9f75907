"""Targets that are known only in part: censored, in intervals, truncated."""
