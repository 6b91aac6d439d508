"""What a user says of a NumPyro model of their own that a policy is to draw from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["ModelSampler"]


@dataclass(frozen=True)
class ModelSampler:
    """A NumPyro model of one's own, for a policy's `sampler`.

    Args:
        model: a function with NumPyro's primitives that is called as that of
            `bayescrowd.models.naive_bayes`, `model(observations, n_items=, n_classes=, n_values=)`,
            or, if the policy's `model` is 'access_path', as that of `access_path`, with
            `n_groups=1` as well. Positions of features,
            classes and values are those of the policy's space. Each reading is of an item of its
            own, whose class is `observations.target`. Readings are padded: those whose `item` is
            `n_items`, and items of class -1, must leave the density as it is. Hidden discrete
            values have to be summed out.
        channels: turns one draw, the values of the model's sites by name, into P(outcome | class)
            of all features, [feature, cls, outcome], zero beyond a feature's last outcome. It is
            compiled, so it uses `jax.numpy`. Outcomes are the values for 'naive_bayes', and for
            'access_path' the multisets of labels in the order of
            `itertools.combinations_with_replacement`. By default they follow from the sites
            `conditional`, [feature, cls, value], and for 'access_path' `confusion`,
            [feature, group, value, label] or [feature, value, label].

    Examples:
        >>> import jax.numpy as jnp, numpyro, numpyro.distributions as dist
        >>> import bayescrowd as bc
        >>> def model(observations, *, n_items, n_classes, n_values):
        ...     shape = (len(n_values), n_classes)
        ...     yes = numpyro.sample("yes", dist.Beta(1, 1).expand(shape).to_event(2))
        ...     conditional = jnp.stack([1 - yes, yes], axis=-1)
        ...     target, item, feature, value = observations
        ...     is_real = item < n_items
        ...     probability = conditional[feature, target[jnp.where(is_real, item, 0)], value]
        ...     numpyro.factor("readings", jnp.where(is_real, jnp.log(probability), 0).sum())
        ...     numpyro.deterministic("conditional", conditional)
        >>> space = bc.FeatureSpace(classes=["a", "b"], features={"x": [0, 1], "y": [0, 1]})
        >>> policy = bc.RoundRobin(space, budget=8, n_features=1, sampler=bc.ModelSampler(model))
        >>> while (query := policy.ask()) is not None:
        ...     policy.tell(query, int(query.feature == "x" and query.target == "b"))
        >>> policy.result().selected
        ('x',)
    """

    # functions, which `__post_init__` checks, with a message of its own
    model: Any
    channels: Any = None

    def __post_init__(self) -> None:
        for name, needed in (("model", True), ("channels", False)):
            value = getattr(self, name)
            if not callable(value) and (needed or value is not None):
                raise TypeError(f"{name} is {value!r:.60}; expected a function")
