"""What is observed of items, as one NumPyro distribution with the items' hidden classes summed out.

Every model states its data as an observed site ``labels`` of this distribution in the plate
``item``. With the classes summed out, an item's labels depend on each other, so a label has no
density of its own: the batch is the items, and the density has one term per item. The value is the
flat array of all labels, as it is observed; it has the event's shape and no axis of items, and
NumPyro broadcasts it over them: item i reads its own labels and no others. Where a value has an
axis of items, as behind `numpyro.handlers.mask`, item i reads its own labels from row i.

What is known of the items beside their labels is a site ``target`` of its own, and the labels'
density is given that target, so both densities are normalised and their sum is the joint density.

To predict, leave the labels out and keep who judges what, as NumPyro does with ``obs=None``. The
fields of `Labels` and `Observations` that may be left out are typed ``| Any`` and not ``| None``,
since they are there wherever data are read:

    >>> import jax
    >>> from numpyro.infer import Predictive
    >>> from bayescrowd.models import one_coin
    >>> item, worker = jax.numpy.array([0, 0, 1]), jax.numpy.array([0, 1, 1])
    >>> unseen = one_coin.Labels(item, worker, label=None)
    >>> sizes = {"n_items": 2, "n_workers": 2, "n_classes": 3}
    >>> prior = Predictive(one_coin.model, num_samples=5)
    >>> prior(jax.random.key(0), unseen, **sizes)["labels"].shape
    (5, 3)
"""

import math
from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, Int, Num, PRNGKeyArray
from numpyro.distributions import constraints

__all__ = ["SummedOut", "sample_classes", "values_of"]


class SummedOut(dist.Distribution):
    """Labels of items, given the parameters, with what is hidden of the items summed out.

    Args:
        log_joint: the model's `label_log_joint`: (params, data, n_items=...) -> log density
            [item, cls], of which the classes are summed out, or [item].
        simulate: the model's `simulate_labels`: (rng_key, params, *design, n_items=...) ->
            `Simulation`. It also takes the keyword `target` or `gold` where the data have such a
            field.
        params: the model's `Params`.
        data: the model's `Labels` or `Observations`. The labels are not looked at.
        item: index of each label's item.
        n_items: number of items.
        last: largest possible label, one number or one for each label; None if labels are real
            numbers.
        log_given: log density of what `data` knows of each item's target, which `log_joint`
            includes, [item, cls] or [item]; None if that is nothing.

    Examples:
        >>> from bayescrowd.models import dawid_skene
        >>> confusion = jnp.array([[[0.9, 0.1], [0.2, 0.8]]])
        >>> params = dawid_skene.Params(jnp.array([0.5, 0.5]), confusion)
        >>> design = dawid_skene.Labels(item=jnp.array([0]), worker=jnp.array([0]), label=None)
        >>> of_labels = SummedOut(
        ...     *(dawid_skene.label_log_joint, dawid_skene.simulate_labels, params, design),
        ...     item=design.item,
        ...     n_items=1,
        ...     last=1,
        ... )
        >>> [round(p, 3) for p in jnp.exp(of_labels.log_prob(jnp.array([1]))).tolist()]
        [0.45]
    """

    # params and data are pytrees of arrays; the functions and sizes are fixed when compiling
    arg_constraints: ClassVar[dict[str, Any]] = {}
    pytree_data_fields = ("_params", "_data", "_item", "_last", "_log_given")
    pytree_aux_fields = ("_log_joint", "_simulate", "_n_items")

    def __init__(
        self,
        log_joint: Callable[..., Array],
        simulate: Callable[..., Any],
        params: Any,
        data: Any,
        *,
        item: Int[Array, " label"],
        n_items: int,
        last: Int[Array, " label"] | int | None,
        log_given: Float[Array, "item ..."] | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._log_joint, self._simulate, self._n_items = log_joint, simulate, n_items
        self._params, self._item, self._last, self._log_given = params, item, last, log_given
        self._data = _with_values(data, None)
        super().__init__((n_items,), item.shape, validate_args=validate_args)

    @property
    def support(self) -> Any:
        """Vectors of classes or values, each from 0 to its last, or of real numbers."""
        if self._last is None:
            return constraints.real_vector
        return constraints.independent(constraints.integer_interval(0, self._last), 1)

    @property
    def has_rsample(self) -> bool:
        """Draws have no derivative by the parameters: classes are discrete."""
        return False

    def sample(
        self, key: PRNGKeyArray | None, sample_shape: tuple[int, ...] = ()
    ) -> Num[Array, "*draw label"]:
        """Draw classes, known ones excepted, and labels given them.

        The result has the layout of observed labels. Several draws have an axis of length one in
        front of the labels, which `log_prob` broadcasts over the items.
        """
        assert key is not None
        fields = self._data._asdict()
        del fields[_values_field(self._data)]
        known = {name: fields.pop(name) for name in ("target", "gold") if name in fields}
        known = {name: field for name, field in known.items() if field is not None}
        design = fields.values()

        def draw(key: PRNGKeyArray) -> Num[Array, " label"]:
            drawn = self._simulate(key, self._params, *design, n_items=self._n_items, **known)
            return values_of(drawn)

        if not sample_shape:
            return draw(key)
        values = jax.vmap(draw)(jax.random.split(key, math.prod(sample_shape)))
        return values.reshape(*sample_shape, 1, *self.event_shape)

    def log_prob(self, value: Any, intermediates: Any = None) -> Float[Array, "*draw item"]:
        """Log density of each item's labels.

        Labels that do not exist have none, with a warning; as with other warnings of NumPyro's
        validation, only values that JAX does not trace are looked at. A check in compiled code
        would look at every label in each step of a sampler.
        """
        log_density = self._log_prob(value)
        if self._validate_args and not isinstance(value, jax.core.Tracer):
            with jax.ensure_compile_time_eval():
                is_possible = self._validate_sample(value)
            log_density = jnp.where(is_possible, log_density, -jnp.inf)
        return log_density

    def _log_prob(self, value: Any) -> Float[Array, "*draw item"]:
        if jnp.ndim(value) == 1:
            return self._log_density(jnp.asarray(value))
        rows = jnp.broadcast_to(
            value, (*jnp.shape(value)[:-2], *self.batch_shape, *self.event_shape)
        )
        own = rows[..., self._item, jnp.arange(len(self._item))]
        flat = jax.vmap(self._log_density)(own.reshape(-1, *self.event_shape))
        return flat.reshape(*own.shape[:-1], *self.batch_shape)

    def _log_density(self, value: Num[Array, " label"]) -> Float[Array, " item"]:
        data = _with_values(self._data, value)
        log_joint = self._log_joint(self._params, data, n_items=self._n_items)
        if self._log_given is not None:
            log_joint = log_joint - self._log_given
        return log_joint if log_joint.ndim == 1 else logsumexp(log_joint, axis=-1)


def sample_classes(
    name: str, prevalence: Float[Array, " cls"], known: Int[Array, " item"] | None
) -> tuple[Int[Array, " item"], Float[Array, "item cls"]]:
    """State a site of the classes that are known; call it in the plate ``item``.

    Args:
        name: name of the site.
        prevalence: probability of each class.
        known: class of each item, or -1 where it is not known and has no density of its own; None
            where classes are to be predicted.

    Returns:
        The classes, and `log_given` of the labels' distribution.
    """
    log_prevalence = jnp.log(prevalence)
    classes = dist.Categorical(logits=log_prevalence)
    of_known = classes if known is None else classes.mask(known >= 0)
    target = numpyro.sample(name, of_known, obs=known)
    # Compared, not picked: gradients of entries picked out one by one are slow. Labels of an item
    # of a class without any probability have no density, rather than NaN.
    is_own = (target[:, None] == jnp.arange(len(prevalence))) & (prevalence > 0)
    return target, jnp.where(is_own, log_prevalence, 0.0)


def values_of(simulation: Any) -> Num[Array, " label"]:
    """What was answered, in the model's `Labels` or `Observations`."""
    data = simulation.labels if hasattr(simulation, "labels") else simulation.observations
    values: Array = getattr(data, _values_field(data))
    return values


def _values_field(data: Any) -> str:
    """Name of the field with what was answered: `label`, or else the last one."""
    return "label" if "label" in data._fields else str(data._fields[-1])


def _with_values(data: Any, values: Num[Array, " label"] | None) -> Any:
    """The data with these labels."""
    return data._replace(**{_values_field(data): values})
