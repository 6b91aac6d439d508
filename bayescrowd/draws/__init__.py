"""Random draws for JAX that are faster on CPUs than those of `jax.random`.

* `uniforms`: uniform numbers from a JAX key.
* `dirichlet`: rows of probabilities, and the gamma draws behind them.
* `categorical`: categories from log weights.
* `restaurant_tables`: auxiliary counts of pooled Dirichlet rows.
"""
