"""Positions in the stream of random numbers."""

import numpy as np

from bayescrowd.budgeted.state import Position


def test_a_generator_continues_where_another_was():
    rng = np.random.default_rng(7)
    rng.random(5)
    rng.integers(10, size=3, dtype=np.int32)  # an odd number of halves of 64 bits
    position = Position.after(rng)
    assert position.has_half == 1
    drawn = position.generator()
    again = position.generator()
    for other in (drawn, again):
        assert Position.after(other) == position
    expected = (rng.integers(10, dtype=np.int32), *rng.standard_gamma(2.0, 4), rng.random())
    found = (drawn.integers(10, dtype=np.int32), *drawn.standard_gamma(2.0, 4), drawn.random())
    assert found == expected
    # drawing from a generator does not move the position it was made from
    assert Position.after(again) == position
