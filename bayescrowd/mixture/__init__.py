"""Mixtures of discrete product distributions."""
