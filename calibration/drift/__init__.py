"""After the fit: priors that have moved, calibrators that may hold no more."""
