"""Where a fit stands, told by the stages to whoever listens."""
