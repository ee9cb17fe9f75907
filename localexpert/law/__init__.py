"""What a forecast is, and what one asks of it."""
