"""Reports: one HTML file on a fitted model and rows that it has not seen."""

from localexpert.reporting.figures import ReportFigures, report_figures
from localexpert.reporting.page import report
from localexpert.reporting.scores import BackTest

__all__ = ["BackTest", "ReportFigures", "report", "report_figures"]
