"""Reports: one HTML file on a fitted model and rows that it has not seen."""

from localexpert.reporting.page import report

__all__ = ["report"]
