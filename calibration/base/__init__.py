"""Bases of the calibrators: what a map, a formula or a class of either promises."""
