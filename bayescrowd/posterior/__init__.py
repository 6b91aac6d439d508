"""Posterior draws of the models, their label posteriors, diagnostics and comparisons."""
