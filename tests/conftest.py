"""Checks every call of the package against its annotated types and array shapes."""

import os
import sys
from pathlib import Path

import hypothesis
import jaxtyping

os.environ.setdefault("MPLBACKEND", "agg")
# Compiling takes most of the suite's time: what one process has compiled, the others read.
os.environ.setdefault(
    "JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".pytest_cache/jax")
)
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")

if "bayescrowd" in sys.modules:
    raise RuntimeError("bayescrowd was imported before the hook that checks its types")
# As for static checkers (PEP 484), an int will do where a float is asked for.
jaxtyping.install_import_hook(
    "bayescrowd", "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))"
)

# Compilation makes the first example slow, and a test must not depend on the day's seed.
hypothesis.settings.register_profile("bayescrowd", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("bayescrowd")
