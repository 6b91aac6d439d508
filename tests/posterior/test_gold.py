"""Known classes in `sample_posterior`, against an enumeration of the classes that are left."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.special import betaln, gammaln, logsumexp

import bayescrowd as bc
from bayescrowd.models import one_coin
from bayescrowd.posterior.container import group_of

MATRIX = [["a", "a", "b"], ["b", "b", None], ["a", None, None], ["b", "a", None]]
ANN = bc.Annotations.from_matrix(MATRIX)
# worker 0 is wrong about task 0, and nobody knows about the others
GOLD = pd.Series({0: "b"})
OPTIONS = {"seed": 3, "n_predictive": 0, "log_likelihood": False, "progress": False}
LENGTHS = {
    "gibbs": {"draws": 4000},
    "nuts": {"draws": 1000, "warmup": 500},
    "svi": {"draws": 1000, "warmup": 2000},
}

pytestmark = pytest.mark.filterwarnings("ignore:label switching", "ignore:the crowd is hardly")


def enumerated(gold):
    """P(class) of each task: all parameters of the one-coin model integrate out."""
    prior = one_coin.Prior()
    a, b = prior.n_pseudo_labels * prior.accuracy, prior.n_pseudo_labels * (1 - prior.accuracy)
    truths = [z for z in product(range(2), repeat=4) if all(z[i] == k for i, k in gold.items())]
    log_weight = []
    for truth in truths:
        counts = np.bincount(truth, minlength=2) + prior.prevalence
        total = gammaln(counts).sum() - gammaln(counts.sum())
        right = np.asarray(truth)[ANN.task_codes] == ANN.label_codes
        for worker in range(3):
            mine = right[ANN.worker_codes == worker]
            total += betaln(a + mine.sum(), b + (~mine).sum()) - betaln(a, b)
        log_weight.append(total)
    share = np.exp(np.array(log_weight) - logsumexp(log_weight))
    return np.einsum("t,tik->ik", share, np.eye(2)[np.array(truths)])


@pytest.mark.parametrize("method", ["gibbs", "nuts", pytest.param("svi", marks=pytest.mark.slow)])
def test_classes_have_the_enumerated_probabilities(method):
    post = bc.sample_posterior(one_coin, ANN, method, gold=GOLD, **LENGTHS[method], **OPTIONS)
    probas = bc.label_posterior(post)
    np.testing.assert_array_equal(probas.loc[0], [0.0, 1.0])
    # Probabilities given a draw's parameters vary by less than 0.25 and have 500 effective draws
    # at least; the normal guides of SVI are off by a few hundredths beside that.
    tolerance = 4 * 0.25 / np.sqrt(500) if method != "svi" else 0.1
    np.testing.assert_allclose(probas, enumerated({0: 1}), atol=tolerance)
    # the control: without the known class, the same tolerance tells the difference
    assert np.abs(probas - enumerated({})).to_numpy()[1:].max() > tolerance
    assert group_of(post, "constant_data")["gold_code"].to_numpy().tolist() == [1, -1, -1, -1]


def test_starts_keep_known_classes():
    init = pd.DataFrame(0.5, ANN.tasks, ANN.classes)
    init.loc[0] = [1.0, 0.0]
    short = {"gold": GOLD, "chains": 2, "draws": 5, "warmup": 0, **OPTIONS}
    for start in (init, "random", "votes"):
        probas = bc.label_posterior(bc.sample_posterior(one_coin, ANN, init=start, **short))
        np.testing.assert_array_equal(probas.loc[0], [0.0, 1.0])


def test_known_classes_keep_their_names():
    # Everybody calls every 'a' a 'b' and every 'b' an 'a', and gold says so.
    crowd = bc.simulate.crowd(60, 5, accuracy=0.95, n_classes=2, seed=0)
    labels = crowd.annotations.to_frame()
    swap = dict(zip(crowd.annotations.classes, crowd.annotations.classes[::-1], strict=True))
    wrong = labels.assign(label=labels["label"].map(swap))
    options = {**OPTIONS, "chains": 2, "draws": 100, "warmup": 100}
    with pytest.warns(UserWarning, match="hardly better than guessing"):
        post = bc.sample_posterior("dawid_skene", wrong, gold=crowd.truth.head(40), **options)
    alignment = group_of(post, "alignment")
    assert not alignment["is_renamed"].any()
    assert (alignment["unstable"] == 0).all()
    assert bc.metrics.error_rate(bc.label_posterior(post), crowd.truth) < 0.05


def test_gold_that_does_not_match_is_counted_and_reported():
    gold = pd.Series({0: "b", 1: "c", 17: "a"})
    short = {"chains": 1, "draws": 5, "warmup": 0, **OPTIONS}
    with pytest.warns(bc.TruthWarning) as found:
        post = bc.sample_posterior(one_coin, ANN, gold=gold, **short)
    messages = " ".join(str(one.message) for one in found)
    assert "nobody chose the class 'c'" in messages
    assert "1 of 3 gold tasks has no labels" in messages
    assert group_of(post, "constant_data")["gold_code"].to_numpy().tolist() == [1, -1, -1, -1]
