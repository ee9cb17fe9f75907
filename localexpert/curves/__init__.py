"""From probabilities at thresholds to smooth curves against the marginal."""
