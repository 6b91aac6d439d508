"""Dawid and Skene's model written plainly for NumPyro, as in its annotation example.

The data are items x positions: row i holds the answers to item i and who gave them, padded to the
largest number of answers. All answers are scored under all classes at once, and the classes are
summed out.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.scipy.special import logsumexp

import bayescrowd as bc
from bayescrowd.models import dawid_skene


def dense_dawid_skene(annotators, answers, is_given, n_annotators, n_classes, pseudo_items, rows):
    """The same posterior as that of `bayescrowd.models.dawid_skene`."""
    with (
        numpyro.plate("annotator", n_annotators, dim=-2),
        numpyro.plate("class", n_classes, dim=-1),
    ):
        confusion = numpyro.sample("confusion", dist.Dirichlet(rows))
    prevalence = numpyro.sample("prevalence", dist.Dirichlet(jnp.full(n_classes, pseudo_items)))
    every_class = jnp.arange(n_classes)[:, None, None]
    answer = dist.Categorical(probs=confusion[annotators, every_class])
    log_answers = jnp.where(is_given, answer.log_prob(answers), 0.0).sum(axis=-1)
    with numpyro.plate("item", annotators.shape[0], dim=-1):
        log_joint = jnp.log(prevalence)[:, None] + log_answers
        numpyro.factor("labels", logsumexp(log_joint, axis=0))


def dense_arguments(ann: bc.Annotations) -> tuple:
    """Arguments of `dense_dawid_skene` for a crowd's labels, under our default prior."""
    n_labels = np.bincount(ann.task_codes, minlength=ann.n_tasks)
    position = np.arange(ann.n_labels) - np.repeat(np.cumsum(n_labels) - n_labels, n_labels)
    annotators, answers = np.zeros((2, ann.n_tasks, n_labels.max()), dtype=int)
    is_given = np.zeros(annotators.shape, dtype=bool)
    annotators[ann.task_codes, position] = ann.worker_codes
    answers[ann.task_codes, position] = ann.label_codes
    is_given[ann.task_codes, position] = True
    prior = dawid_skene.Prior()
    return (
        *map(jnp.asarray, (annotators, answers, is_given)),
        ann.n_workers,
        ann.n_classes,
        prior.prevalence,
        dawid_skene.confusion_concentration(prior, ann.n_classes),
    )
