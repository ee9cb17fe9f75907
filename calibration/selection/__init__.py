"""Choosing among calibrators by held-out trials."""
