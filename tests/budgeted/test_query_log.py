"""What users report: recognised when it comes again, refused when it contradicts itself."""

import pytest

from bayescrowd.budgeted.query_book import Event, OpenQuery, Query, QueryBook
from bayescrowd.budgeted.query_log import QueryLog

COLOURS = ("red", "green")


def code_of(feature, value):
    if value not in COLOURS:
        raise ValueError(f"feature {feature!r} has no value {value!r}")
    return COLOURS.index(value)


class Desk:
    """A log and a book that are told together, as in a policy, with one query of three labels."""

    def __init__(self, n_labels=3):
        self.query = Query("beak", "finch", n_labels, 1)
        self.book = QueryBook.empty(1, 2).ask(OpenQuery(self.query, 0, 1, 1.0, ()))
        self.log = QueryLog(code_of).add(Event("asked", self.query, ()))

    def tell(self, answers, workers=None):
        event = self.log.check_answers(self.query, answers, workers, self.book)
        if event is not None:
            self.book, _ = self.book.answer(1, event.answers, event.workers)
            self.log = self.log.add(event)
        return event


def told(desk):
    return [(e.answers, e.workers) for e in desk.log.events if e.kind == "told"]


@pytest.mark.parametrize("again", [1, 2, 3])
def test_a_partial_report_that_comes_again_is_not_charged(again):
    desk = Desk()
    desk.tell("red")
    for _ in range(again):
        with pytest.warns(UserWarning, match=r"query 1 .*'red' was reported before .*name the w"):
            desk.tell("red")
    assert desk.book.spent == 1
    assert told(desk) == [(("red",), ())]


def test_any_earlier_report_may_come_again_not_only_the_last():
    desk = Desk(5)
    desk.tell(["red", "green"])
    desk.tell("green")
    for same in (["green", "red"], ["green"], ["green", "green", "red"]):
        with pytest.warns(UserWarning, match="reported before"):
            desk.tell(same)
    assert desk.book.spent == 3
    desk.tell(["red", "red"])  # never reported like this
    assert desk.book.spent == 5
    desk.tell(["red", "red"])  # no label is missing: no reason to doubt that it is a repeat
    desk.tell("green")
    assert desk.book.spent == 5


def test_equal_labels_of_several_workers_all_count():
    desk = Desk()
    for worker in ("Ann", "Bob", "Ann", "Cy", "Bob"):
        desk.tell("red", worker)
    assert told(desk) == [(("red",), (name,)) for name in ("Ann", "Bob", "Cy")]
    assert desk.book.spent == 3


def test_of_a_report_with_workers_only_what_is_new_counts():
    desk = Desk()
    desk.tell(["red", "green"], ["Ann", "Bob"])
    event = desk.tell(["green", "green", "green"], ["Cy", "Bob", "Cy"])
    assert (event.answers, event.workers) == (("green",), ("Cy",))
    assert desk.tell(["green", "red"], ["Cy", "Ann"]) is None
    assert desk.book.spent == 3
    assert desk.tell(["red", "green", "green"]) is None  # what closed the query, without names


def test_named_and_unnamed_labels_of_one_query():
    desk = Desk()
    desk.tell("red")
    desk.tell("red", "Ann")
    with pytest.warns(UserWarning, match="reported before"):
        desk.tell("red")
    desk.tell("green", "Bob")
    assert told(desk) == [(("red",), ()), (("red",), ("Ann",)), (("green",), ("Bob",))]


BAD = [
    ("green", "Ann", "worker 'Ann' answered 'red' before; got 'green'"),
    (["green", "red"], ["Bob", "Bob"], "worker 'Bob' answered 'green' before; got 'red'"),
    (["red", "red"], ["Bob"], "got 2 answers of 1 worker; expected one worker per answer"),
    ("red", ["Bob", "Cy"], "got 1 answer of 2 workers"),
    (["red", "red"], ["Bob", None], "a worker is None"),
    (["red"] * 3, ["Bob", "Cy", "Di"], "lacks 2 labels; got 3"),
    ("blue", "Bob", "has no value 'blue'"),
    ([], [], "no answer given"),
]


@pytest.mark.parametrize(("answers", "workers", "message"), BAD, ids=[m for *_, m in BAD])
def test_bad_reports_change_nothing(answers, workers, message):
    desk = Desk()
    desk.tell("red", "Ann")
    before = desk.log.events
    with pytest.raises(ValueError, match=message):
        desk.tell(answers, workers)
    assert desk.log.events == before


def test_a_closed_query_takes_nothing_new():
    desk = Desk(2)
    desk.tell(["red", "green"], ["Ann", "Bob"])
    for answers, workers in (("red", "Cy"), ("red", None), (["red", "green"], ["Ann", "Cy"])):
        with pytest.raises(ValueError, match="is closed with the answers 'red', 'green'; got"):
            desk.tell(answers, workers)


def test_a_log_is_never_changed():
    first = Desk().log
    query = first.events[0].query
    red, green = (Event("told", query, (colour,)) for colour in COLOURS)
    one, other = first.add(red), first.add(green)
    longer = one.add(green)
    assert [len(log) for log in (first, one, other, longer)] == [1, 2, 2, 3]
    assert (*first.events, red) == one.events
    assert (*first.events, green) == other.events
    assert (*one.events, green) == longer.events
    # an answer that only another log has is not known here
    book = Desk().book
    assert first.check_answers(query, "red", None, book) == red
    assert other.check_answers(query, "red", None, book) == red
