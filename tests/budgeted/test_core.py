"""The pure core of every policy, under both models: values that never change, and replay."""

import numpy as np
import pytest

import bayescrowd as bc
from bayescrowd.budgeted.beliefs.naive_bayes import Belief
from bayescrowd.budgeted.query_book import Event
from bayescrowd.budgeted.state import Ask, Stop, Wait

# Two classes, at most four values and three labels, as in the tests of the access path belief: the
# sweep is compiled once.
VALUES = {"a": [0, 1], "b": ["x", "y", "z"], "c": [0, 1, 2, 3], "d": ["no", "yes"]}
COSTS = {"b": 1.5, "c": 0.5}
SPACE = bc.FeatureSpace(classes=["p", "q"], features=VALUES, prior=[0.6, 0.4], costs=COSTS)

OWN = bc.BLeafs(SPACE, 60, 2, seed=4).core.problem.space
"""The space as policies order it."""

every_model = pytest.mark.parametrize("model", ["naive_bayes", "access_path"])


def content(value):
    """Everything that a value says, in numbers and bytes that can be compared."""
    if isinstance(value, Belief):
        said = [value.mean(), value.draw(np.random.default_rng(0))]
        for f, width in enumerate(OWN.n_values):
            known = value.credibility(
                f, OWN.class_prior, epsilon=0.05, measure="interval", required=(0.4, 0.4)
            )
            reader = value.reader(f, np.arange(width), "mean")
            said += [known, reader.log_likelihood(np.array([[0, 1, -1], [1, 1, 0]]))]
        return [type(value), *map(content, said)]
    if isinstance(value, np.ndarray):
        return value.shape, value.tobytes()
    if isinstance(value, dict):
        return [(key, content(entry)) for key, entry in value.items()]
    if isinstance(value, tuple):
        return [type(value), *map(content, value)]
    return value


def make(kind, model, **options):
    """A policy with 3 labels per query and a budget for about 20 queries."""
    return kind(SPACE, 60, 2, model=model, labels_per_query=3, seed=4, **options)


def answers(query, n):
    """Answers that follow the class for features a and b, and the query's number otherwise."""
    values = VALUES[query.feature]
    place = int(query.target == "q") if query.feature in "ab" else query.id % len(values)
    said = [values[place]] * 3
    if query.id % 3 == 0:
        said[0] = values[(place + 1) % len(values)]
    return said[:n]


def run(policy):
    """Late, partial, withdrawn and exhausted queries; the state before and after every event."""
    rng = np.random.default_rng(1)
    states = [policy.state]
    n_answers = {}
    while True:
        # one question at a time, so that there is a state for every event
        if rng.random() < 0.6 and policy.ask() is not None:
            states.append(policy.state)
        elif policy.open_queries:
            query = policy.open_queries[int(rng.integers(len(policy.open_queries)))]
            n_before = n_answers.get(query.id, 0)
            if query.id % 5 == 2 and n_before == 0:
                policy.exhausted(query)
            elif query.id % 5 == 4 and n_before == query.id % 2:
                policy.withdraw(query)
            else:
                n_new = int(rng.integers(1, 4 - n_before))
                new = slice(n_before, n_before + n_new)
                policy.tell(query, answers(query, 3)[new], workers=["Ann", "Bob", "Cy"][new])
                n_answers[query.id] = n_before + n_new
            states.append(policy.state)
        elif policy.stopped:
            return states


@pytest.fixture(scope="module")
def finished_runs():
    """The run of each policy and model: policy, states, and what these said when it was made."""
    runs = {}

    def find(kind, model):
        if (kind, model) not in runs:
            policy = make(kind, model)
            states = run(policy)
            runs[kind, model] = policy, states, [content(state) for state in states]
        return runs[kind, model]

    return find


@every_model
def test_the_run_has_events_of_every_kind_and_several_open_queries(finished_runs, kind, model):
    policy, states, _ = finished_runs(kind, model)
    assert {event.kind for event in policy.events} == {"asked", "told", "exhausted", "withdrawn"}
    assert max(len(state.book.open_queries) for state in states) > 2
    assert len(states) == len(policy.events) + 1


@every_model
def test_earlier_states_stay_as_they_were(finished_runs, kind, model):
    policy, states, contents = finished_runs(kind, model)
    # another continuation of an early state, with other answers
    early = next(state for state in states if state.book.open_queries)
    for entry in early.book.open_queries.values():
        values = VALUES[entry.query.feature]
        said = tuple(values[-1:] * entry.n_missing)
        early = policy.core.tell(early, Event("told", entry.query, said))
    content(early)
    assert [content(state) for state in states] == contents


@every_model
def test_the_same_state_has_the_same_decision(finished_runs, kind, model):
    policy, states, contents = finished_runs(kind, model)
    kinds = set()
    for state, before in zip(states[::3], contents[::3], strict=True):
        decisions = [policy.core.decide(state) for _ in range(2)]
        decisions.append(policy.core.choose(state.position.generator(), state))
        assert content(decisions[0]) == content(decisions[1]) == content(decisions[2])
        assert content(state) == before
        kinds.add(type(decisions[0]))
    assert Ask in kinds


@every_model
def test_waiting_changes_nothing(kind, model):
    policy, undisturbed = make(kind, model), make(kind, model)
    queries = policy.ask_batch(100)
    assert undisturbed.ask_batch(len(queries)) == queries
    state = policy.state
    assert isinstance(policy.core.decide(state), Wait)
    assert policy.core.follow(state, Wait()) is state
    for query in queries:
        before = policy.state
        if policy.ask() is None:
            assert policy.state is before
        else:
            assert undisturbed.ask() is not None
        for each in (policy, undisturbed):
            each.tell(query, answers(query, 3))
    assert content(policy.state) == content(undisturbed.state)
    assert policy.ask_batch(3) == undisturbed.ask_batch(3)


def test_waiting_for_answers_before_nothing_is_worth_its_price():
    # the gains are computed, with random numbers, before the policy knows that it has to wait
    policy = make(bc.BudgetedSelection, "naive_bayes", stop="worthless", least_gain=0.02)
    while not isinstance(policy.core.decide(policy.state), Wait):
        query = policy.ask()
        assert query is not None, "it stopped without having waited"
        if len(policy.open_queries) == 3:
            policy.tell(policy.open_queries[0], answers(policy.open_queries[0], 3))
    state, before = policy.state, content(policy.state)
    assert policy.ask() is None
    assert policy.stopped == ""
    assert policy.state is state
    assert content(state) == before


def test_stopping_is_a_function_of_the_state():
    policy = make(bc.BudgetedSelection, "naive_bayes", stop="worthless", least_gain=10.0)
    decision = policy.core.decide(policy.state)
    assert isinstance(decision, Stop)
    assert decision.reason == policy.stopped == "no purchase is worth its price"
    assert policy.core.follow(policy.state, decision) is policy.state
    assert np.isfinite(decision.memory.gains).all()
    assert policy.gains().to_dict() == dict(
        zip(policy.core.problem.feature_names, decision.memory.gains.tolist(), strict=True)
    )


@every_model
def test_replaying_any_prefix_continues_identically(finished_runs, kind, model):
    policy, states, contents = finished_runs(kind, model)
    core, events = policy.core, policy.events
    for n in range(0, len(events) + 1, 9):
        replayed = make(kind, model).replay(events[:n])
        assert content(replayed.state) == contents[n]
        # from a state alone, by the functions of the core
        state = states[n]
        for event in events[n : n + 12]:
            if event.kind == "asked":
                decision = core.decide(state)
                assert core.query(state, decision) == event.query
                state = core.follow(state, decision)
            state = core.tell(state, event)
        assert content(state) == contents[min(n + 12, len(events))]
    whole = make(kind, model).replay(events)
    assert whole.events == events
    assert content(whole.state) == contents[-1]
    assert whole.stopped == policy.stopped != ""
