"""Laws: forecasts as objects of the program, and their answers."""
