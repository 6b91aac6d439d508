"""What is not a model is refused when it is named."""

import pytest

from bayescrowd.budgeted.beliefs.model_sampler import ModelSampler


def test_what_is_no_function_is_refused():
    with pytest.raises(TypeError, match="model is 3; expected a function"):
        ModelSampler(3)
