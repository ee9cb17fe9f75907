"""Risk of forecasts and the decisions that follow from it."""

__all__: list[str] = []
