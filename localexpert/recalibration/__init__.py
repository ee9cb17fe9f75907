"""Corrections of whole forecasts, learned from rows that no fit has seen."""
