"""After the fit: priors that have moved, and calibrators that may hold no longer."""
