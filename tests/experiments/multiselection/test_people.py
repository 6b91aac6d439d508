import numpy as np

from bayescrowd.experiments.multiselection.people import ATTRIBUTES, draw_people, population


def test_the_crowd_of_photos():
    people = draw_people()
    assert people.score.shape == (880, 39)
    photos = population("weight", people)
    rng = np.random.default_rng(0)
    male = photos.judge(rng, ATTRIBUTES.index("male"), 2)
    assert set(np.unique(male)) == {0.0, 1.0}
    assert (male[:, 0] == male[:, 1]).mean() > 0.98
    guessed = photos.judge(rng, ATTRIBUTES.index("estimated weight"), 50).mean(axis=1)
    assert np.corrcoef(guessed, people.weight)[0, 1] > 0.85
    assert photos.costs.iloc[-1] == 4


def test_target_is_what_was_asked_for():
    people = draw_people()
    np.testing.assert_array_equal(population("height").target, people.height)
    np.testing.assert_array_equal(population("weight").target, people.weight)
