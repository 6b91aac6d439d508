"""Estimators that turn noisy judgements into labels: one file per method, one protocol."""
