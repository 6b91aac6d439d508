"""Random numbers that are the same on every machine and under every order of compilation.

* `uniforms`: uniform numbers from a JAX key.
* `dirichlet`: rows of probabilities, and the gamma numbers behind them.
* `categorical`: one of several categories, from log weights.
"""
