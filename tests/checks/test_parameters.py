"""Arguments are checked against annotations, down to the entries; good values pass unchanged."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from bayescrowd.checks.parameters import Count, Positive, as_numbers, check_arguments, check_fields

if TYPE_CHECKING:
    from fractions import Fraction


class Scales(NamedTuple):
    width: Positive = 1.0
    found: float = math.nan


def take(
    sizes: Sequence[Count],
    budgets: Iterable[Positive],
    costs: Mapping[str, Positive],
    matrix: Float[np.ndarray, "row column"],
    mask: Bool[np.ndarray, " row"],
    item: Int[Array, " label"],
    rng_key: PRNGKeyArray,
    scales: Scales,
    share: Fraction | None,
) -> None: ...


WRONG = [
    ("sizes", [1, 0], r"sizes\[1\]=0: expected at least 1 \(a whole number\)"),
    ("sizes", np.array([3, 2, -1, 5]), r"sizes\[2\]=-1: expected at least 1"),
    ("sizes", np.array([1.0, math.nan]), r"sizes\[1\]=nan: expected at least 1"),
    ("sizes", "12", "sizes='12': expected a list"),
    ("costs", {"a": 1, "b": -1}, r"costs\['b'\]=-1: expected a finite number above 0"),
    ("matrix", [[1.0], [1.0, 2.0]], "matrix=.*: expected an array of numbers by row, column"),
    ("matrix", np.ones(2), "matrix=.*: expected an array of numbers by row, column"),
    ("matrix", np.array([[0.5, math.inf]]), r"matrix\[0, 1\]=inf: expected a finite number"),
    ("mask", np.ones(2), "mask=.*: expected an array of truth values by row"),
    ("item", np.ones(2), "item=.*: expected an array of whole numbers by label"),
    ("rng_key", 0, "rng_key=0: expected a key of jax.random$"),
    ("scales", Scales(0.0), r"scales\.width=0\.0: expected a finite number above 0"),
    ("share", 0.5, "share=0.5: expected a Fraction or None"),
]


@pytest.mark.parametrize(("name", "value", "message"), WRONG)
def test_the_wrong_part_is_named(name, value, message):
    with pytest.raises((TypeError, ValueError), match=message):
        check_arguments(take, {name: value})


def test_good_values_pass():
    from fractions import Fraction

    once = iter([1.0])
    good = {
        "sizes": (1, np.int64(2)),
        "budgets": once,
        "costs": {"a": 1},
        "matrix": [[0, 1], [1, 0]],
        "mask": [True, False],
        "item": np.array([0, 1]),
        "rng_key": jax.random.key(0),
        "scales": Scales(),
        "share": Fraction(1, 2),
    }
    check_arguments(take, good)
    check_arguments(take, {"rng_key": jax.random.PRNGKey(0), "share": None})
    assert list(once) == [1.0]


def test_nested_lists_are_accepted_as_arrays():
    rows = [[[0.8, 0.2], [0.1, 0.9]]] * 2
    process = (
        "import bayescrowd as bc;"
        f"crowd = bc.simulate.crowd(5, 2, confusions={rows}, mask=[[True, True]] * 5);"
        "print(len(bc.simulate.with_hard_items(crowd, lures=[[0, 1], [1, 0]]).truth))"
    )  # without the hook that checks types in the tests
    done = subprocess.run([sys.executable, "-c", process], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("5\n", "")


def test_traced_values_pass():
    @jax.jit
    def double(width, item, key):
        check_arguments(take, {"item": item, "rng_key": key, "scales": Scales(width)})
        return 2 * width

    assert double(-1.0, jnp.array([0]), jax.random.key(0)) == -2.0
    with pytest.raises(ValueError, match=r"prior\.width=-1.0: expected"):
        check_fields("prior", Scales(-1.0))


def test_text_is_not_a_number():
    assert as_numbers("init", [[1, 2]]).tolist() == [[1.0, 2.0]]
    with pytest.raises(ValueError, match="init: expected numbers"):
        as_numbers("init", np.array(["a"]))
