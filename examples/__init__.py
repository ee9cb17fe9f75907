"""Examples that run, each a page of the gallery. A package, so that no other is met."""
