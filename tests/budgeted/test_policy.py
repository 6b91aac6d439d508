"""What every policy promises, checked on every one that the package exports."""

import inspect
import pickle
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bayescrowd as bc
from bayescrowd.budgeted.policy import Policy
from bayescrowd.budgeted.query_log import QueryLog


def exported_policies():
    found = [getattr(bc, name) for name in bc.__all__ if name[0].isupper()]
    return [c for c in found if inspect.isclass(c) and issubclass(c, Policy)]


POLICIES = exported_policies()
every_policy = pytest.mark.parametrize("kind", POLICIES, ids=lambda c: c.__name__)

VALUES = {"a": [0, 1], "b": ["x", "y", "z"], "c": [0, 1, 2, 3], "d": ["no", "yes"]}


def small_space(**changes):
    arguments = {"classes": ["p", "q"], "features": VALUES, "prior": [0.6, 0.4]}
    return bc.FeatureSpace(**(arguments | changes))


def answer(query):
    """A crowd without randomness: features a and b follow the class, c and d the query's number."""
    values = VALUES[query.feature]
    place = (query.target == "q") if query.feature in "ab" else query.id % len(values)
    return [values[int(place)]] * query.n_labels


def finish(policy):
    for query in policy.open_queries:
        policy.tell(query, answer(query))
    while (query := policy.ask()) is not None:
        policy.tell(query, answer(query))
    return policy


def test_the_policies_are_exported():
    names = {kind.__name__ for kind in POLICIES}
    assert {"BLeafs", "RoundRobin", "BiasedRobin", "TsGreedy", "BudgetedSelection"} <= names


@every_policy
def test_a_run_adds_up(kind):
    policy = finish(kind(small_space(), 40, 2, seed=3))
    result = policy.result()
    assert result.spent + result.left == 40
    assert result.spent == len(result.history) == result.spending["labels"].sum()
    assert len({*result.selected}) == 2
    assert {*result.selected} <= {*VALUES}
    assert result.classifier.features == result.selected
    assert result.spending.index.to_list() == list(VALUES)
    assert result.spending["selected"].sum() == 2
    assert policy.credibility().index.to_list() == list(VALUES)
    assert result.stopped == policy.stopped != ""
    assert policy.ask() is None


# The other two policies stay with the first feature that keeps helping.
@pytest.mark.parametrize(
    "kind",
    [kind for kind in POLICIES if kind not in (bc.PosteriorMeanGreedy, bc.BiasedRobin)],
    ids=lambda c: c.__name__,
)
def test_finds_the_informative_features(kind):
    assert {*finish(kind(small_space(), 60, 2, seed=0)).result().selected} == {"a", "b"}


@every_policy
def test_same_seed_same_questions_and_another_seed_others(kind):
    runs = [finish(kind(small_space(), 30, 2, seed=seed)).events for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]


@every_policy
def test_the_order_of_features_values_and_classes_does_not_matter(kind):
    turned = small_space(
        classes=["q", "p"],
        prior=[0.4, 0.6],
        features={name: VALUES[name][::-1] for name in reversed(VALUES)},
    )
    one, other = (finish(kind(space, 40, 2, seed=5)) for space in (small_space(), turned))
    assert one.events == other.events
    assert one.result().selected == other.result().selected
    pd.testing.assert_series_equal(one.credibility(), other.credibility()[list(VALUES)])


@every_policy
def test_other_names_for_the_values_give_the_same_questions(kind):
    renamed = {name: [f"{i}!" for i in range(len(v), 0, -1)] for name, v in VALUES.items()}
    policy = kind(small_space(features=renamed), 40, 2, seed=5)
    original = finish(kind(small_space(), 40, 2, seed=5))
    while (query := policy.ask()) is not None:
        new = [renamed[query.feature][VALUES[query.feature].index(v)] for v in answer(query)]
        policy.tell(query, new)
    assert [e.query for e in policy.events] == [e.query for e in original.events]
    frame = pd.DataFrame({f: np.resize(v, 12) for f, v in VALUES.items()}, dtype=object)
    said = pd.DataFrame({f: np.resize(v, 12) for f, v in renamed.items()}, dtype=object)
    one = original.result().classifier.predict_proba(frame)
    pd.testing.assert_frame_equal(policy.result().classifier.predict_proba(said), one)


@every_policy
@pytest.mark.parametrize("n_events", [7, 24])
def test_a_replayed_policy_continues_identically(kind, n_events):
    space = small_space(costs={"c": 2})
    whole = finish(kind(space, 40, 2, seed=9))
    halfway = kind(space, 40, 2, seed=9).replay(whole.events[:n_events])
    assert halfway.events == whole.events[:n_events]
    assert finish(halfway).events == whole.events
    assert halfway.result().selected == whole.result().selected


@every_policy
def test_a_pickled_policy_continues_identically(kind):
    policy = kind(small_space(), 30, 2, seed=9)
    for _ in range(10):
        query = policy.ask()
        policy.tell(query, answer(query))
    copy = pickle.loads(pickle.dumps(policy))
    assert finish(copy).events == finish(policy).events


def test_replay_refuses_questions_that_it_would_not_ask():
    events = finish(bc.TsGreedy(small_space(), 20, 2, seed=0)).events
    with pytest.raises(ValueError, match=r"event \d+: this policy asks"):
        bc.TsGreedy(small_space(), 20, 2, seed=1).replay(events)
    with pytest.raises(ValueError, match="has not asked anything"):
        finish(bc.TsGreedy(small_space(), 20, 2, seed=0)).replay(events)
    followed = bc.TsGreedy(small_space(), 20, 2, seed=1).replay(events, strict=False)
    assert followed.events == events
    assert followed.spent == 20
    first = events[0].query
    for wrong in (first._replace(feature="z"), first._replace(id=2), first._replace(n_labels=3)):
        policy = bc.TsGreedy(small_space(), 20, 2, seed=1)
        with pytest.raises(ValueError, match=r"event 1: .* is not a question of this policy"):
            policy.replay([events[0]._replace(query=wrong)], strict=False)
        assert policy.events == ()


@every_policy
@given(data=st.data())
@settings(max_examples=5)
def test_the_budget_holds_in_whatever_order_answers_come(kind, data):
    """Late, partial and out-of-order answers, withdrawals and exhausted classes."""
    space = small_space(costs={"b": 1.5, "c": 0.5})
    budget = data.draw(st.integers(6, 30))
    policy = kind(space, budget, 2, labels_per_query=2, seed=data.draw(st.integers(0, 99)))
    while queries := [*policy.ask_batch(data.draw(st.integers(1, 4))), *policy.open_queries]:
        query = data.draw(st.sampled_from(queries))
        if query not in policy.open_queries:
            continue
        before = policy.spent
        deed = data.draw(st.sampled_from(["one", "one", "both", "exhausted", "withdraw"]))
        is_fresh = sum(len(e.answers) for e in policy.events if e.query == query) == 0
        if deed == "exhausted" and is_fresh:
            policy.exhausted(query)
        elif deed == "withdraw":
            policy.withdraw(query)
        else:
            n_labels = 2 if deed == "both" and is_fresh else 1
            new = slice(0, n_labels) if is_fresh else slice(1, 2)
            policy.tell(query, answer(query)[new], workers=["Ann", "Bob"][new])
            assert policy.spent == pytest.approx(before + n_labels * space.costs[query.feature])
        assert policy.spent + policy.left == pytest.approx(budget)
        assert policy.spent <= budget + 1e-9
    assert policy.stopped
    result = policy.result()
    assert len({*result.selected}) == 2
    assert result.spending["cost"].sum() == pytest.approx(policy.spent)
    assert kind(space, budget, 2, labels_per_query=2, seed=policy.seed).replay(policy.events).events


@every_policy
def test_an_exhausted_class_is_not_asked_for_again(kind):
    policy = kind(small_space(), 100, 2, seed=1)
    n_left = {(f, y): 3 for f in VALUES for y in "pq"}
    while (query := policy.ask()) is not None:
        pair = query.feature, query.target
        assert n_left[pair] >= 0, "asked about after it was reported as exhausted"
        if n_left[pair] == 0:
            before = policy.spent
            policy.exhausted(query)
            assert policy.spent == before
        else:
            policy.tell(query, answer(query))
        n_left[pair] -= 1
    assert policy.spent <= 24
    assert "nothing left" in policy.stopped or "selected" in policy.stopped
    assert len(policy.result().selected) == 2


def test_an_exhausted_class_is_redrawn_for_the_same_feature():
    policy = bc.TsGreedy(small_space(), 20, 2, seed=0)
    query = policy.ask()
    policy.exhausted(query)
    again = policy.ask()
    assert again.feature == query.feature
    assert again.target != query.target


@every_policy
def test_answers_may_come_all_at_once_or_one_by_one(kind):
    whole = finish(kind(small_space(), 60, 2, labels_per_query=3, seed=2))
    singly = kind(small_space(), 60, 2, labels_per_query=3, seed=2)
    while (query := singly.ask()) is not None:
        for worker, label in enumerate(answer(query)):
            singly.tell(query.id, label, workers=worker)
    asked = [[e.query for e in p.events if e.kind == "asked"] for p in (whole, singly)]
    assert asked[0] == asked[1]
    assert whole.result().selected == singly.result().selected


BAD_ARGUMENTS = [
    ({"budget": 0}, "budget=0: expected at least 1"),
    ({"budget": -5}, "budget=-5"),
    ({"budget": 4, "labels_per_query": 5}, "expected at least 5, the price of one query"),
    ({"n_features": 5}, "n_features=5: expected 1 to 4"),
    ({"n_features": 0}, "n_features=0"),
    ({"labels_per_query": 0}, "labels_per_query=0"),
    ({"model": "naive"}, "model='naive': expected one of naive_bayes"),
]


@every_policy
@pytest.mark.parametrize(("changes", "message"), BAD_ARGUMENTS, ids=[m for _, m in BAD_ARGUMENTS])
def test_bad_arguments(kind, changes, message):
    arguments = {"space": small_space(), "budget": 20, "n_features": 2} | changes
    with pytest.raises(ValueError, match=message):
        kind(**arguments)


BAD_ANSWERS = [
    (lambda p, q: p.tell(q, "seven"), "has no value 'seven'; expected one of"),
    (lambda p, q: p.tell(99, answer(q)), "99: never asked"),
    (lambda p, q: p.tell(q._replace(target="r"), answer(q)), "never asked"),
    (lambda p, q: p.tell(q, answer(q) * 3), "lacks 2 labels; got 6"),
    (lambda p, q: p.tell(q, []), "no answer given"),
]


@pytest.mark.parametrize(("deed", "message"), BAD_ANSWERS, ids=[m for _, m in BAD_ANSWERS])
def test_bad_answers_spend_nothing(deed, message):
    policy = bc.RoundRobin(small_space(), 20, 2, labels_per_query=2)
    query = policy.ask()
    events = policy.events
    with pytest.raises(ValueError, match=message):
        deed(policy, query)
    assert policy.spent == 0
    assert policy.events == events


def test_a_second_answer_must_equal_the_first():
    policy = bc.RoundRobin(small_space(), 20, 2)
    query = policy.ask()
    values = VALUES[query.feature]
    policy.tell(query, values[0])
    policy.tell(query, values[0])
    assert policy.spent == 1
    with pytest.raises(ValueError, match="is closed with the answers"):
        policy.tell(query, values[1])
    assert policy.spent == 1


PACKAGE = str(Path(bc.__file__).parent / "budgeted")


@contextmanager
def interruption(after):
    """Raise a KeyboardInterrupt after a number of bytecode instructions of budgeted learning."""
    left = after

    def trace(frame, event, _):
        nonlocal left
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            left -= 1
            if left < 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


def content(policy):
    """What another decision would depend on, and what there is to see."""
    book, belief, *_ = policy.state
    return [np.asarray(part).tolist() for part in (*book[4:], belief.mean())], policy.events


@pytest.mark.parametrize(("n_labels", "step"), [(1, 5), (2, 3)])
def test_an_interrupted_answer_is_lost_nowhere_and_charged_once(n_labels, step):
    """Ctrl-C at every third or fifth instruction of `tell`: all of it has happened, or nothing."""
    policy = bc.TsGreedy(small_space(), 20, 2, labels_per_query=2)
    query = policy.ask()
    said, workers = answer(query)[:n_labels], ["Ann", "Bob"][:n_labels]
    asked = pickle.dumps(policy)
    before = content(policy)
    policy.tell(query, said, workers)
    expected = before, content(policy)
    outcomes, after = [], 0
    while True:
        attempt = pickle.loads(asked)
        try:
            with interruption(after):
                attempt.tell(query, said, workers)
        except KeyboardInterrupt:
            pass
        else:
            break
        outcomes.append(expected.index(content(attempt)))
        attempt.tell(query, said, workers)
        assert content(attempt) == expected[1]
        after += step
    assert outcomes == sorted(outcomes)  # nothing, up to one instruction; from there on, all
    assert {*outcomes} == {0, 1}


@pytest.mark.parametrize("place", ["belief", "core", "log"])
def test_an_interruption_while_the_model_learns(place, monkeypatch):
    policy = bc.BLeafs(small_space(), 30, 2, labels_per_query=2, model="access_path")
    query = policy.ask()
    policy.tell(query, answer(query)[0])
    before = content(policy)
    at = {
        "belief": (type(policy.state.belief), "observe"),
        "core": (type(policy.core), "tell"),
        "log": (QueryLog, "add"),
    }[place]

    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(*at, interrupt)
        with pytest.raises(KeyboardInterrupt):
            policy.tell(query, answer(query)[1], "Bob")
    assert content(policy) == before
    policy.tell(query, answer(query)[1], "Bob")
    policy.tell(query, answer(query)[1], "Bob")
    assert policy.spent == 2
    assert policy.open_queries == ()
    assert policy.result().history["workers"].to_list() == [(None, "Bob")]


def test_an_interrupted_question_can_be_found():
    """Ctrl-C at every seventh instruction of `ask`: the question is open or will be asked."""
    expected = bc.RoundRobin(small_space(), 20, 2).ask()
    outcomes, after = [], 0
    while True:
        policy = bc.RoundRobin(small_space(), 20, 2)
        try:
            with interruption(after):
                policy.ask()
        except KeyboardInterrupt:
            pass
        else:
            break
        outcomes.append(len(policy.open_queries))
        assert (policy.open_queries or (policy.ask(),)) == (expected,)
        after += 7
    assert {*outcomes} == {0, 1}


@every_policy
def test_a_partial_answer_that_is_repeated_is_charged_once(kind):
    policy = kind(small_space(), 30, 2, labels_per_query=3)
    query = policy.ask()
    policy.tell(query, answer(query)[0])
    with pytest.warns(UserWarning, match="was reported before"):
        policy.tell(query, answer(query)[0])
    assert policy.spent == 1
    policy.tell(query, answer(query)[:2])
    assert policy.spent == 3
    policy.tell(query, answer(query)[:2])
    assert policy.spent == 3


def test_a_closed_query_stays_closed():
    policy = bc.RoundRobin(small_space(), 20, 2, labels_per_query=2)
    one, other = policy.ask_batch(2)
    policy.withdraw(one)
    with pytest.raises(ValueError, match="query 1 is closed already"):
        policy.exhausted(one)
    policy.tell(other, answer(other)[:1])
    with pytest.raises(ValueError, match="query 2 has answers, hence an instance"):
        policy.exhausted(other)


def test_open_queries_reserve_their_price():
    policy = bc.RoundRobin(small_space(), 5, 2)
    queries = policy.ask_batch(9)
    assert len(queries) == len(policy.open_queries) == 5
    assert policy.stopped == ""  # the answers are still to come
    policy.withdraw(queries[0])
    assert len(policy.ask_batch(9)) == 1


def test_labels_of_a_withdrawn_query_stay_in_use():
    policy = bc.RoundRobin(small_space(), 30, 1, labels_per_query=3)
    query = policy.ask()
    before = policy.credibility()[query.feature]
    policy.tell(query, answer(query)[0])
    policy.withdraw(query)
    assert policy.credibility()[query.feature] > before
    assert policy.spent == 1


def test_costs_are_paid_by_feature():
    policy = finish(bc.RoundRobin(small_space(costs={"c": 5}), 32, 1))
    spending = policy.result().spending
    assert spending.loc["c", "cost"] == 5 * spending.loc["c", "labels"]
    assert spending["cost"].sum() == policy.spent <= 32
