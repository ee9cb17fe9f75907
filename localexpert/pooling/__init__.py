"""Pools of laws, with weights learned out of fold."""
