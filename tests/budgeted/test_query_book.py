"""The books of queries: money by hand, and values that stay as they are."""

import numpy as np
import pytest

from bayescrowd.budgeted.query_book import OpenQuery, Query, QueryBook


def opened(id_, feature=0, cls=1, cost=2.0, n_labels=3):
    return OpenQuery(Query(f"f{feature}", f"y{cls}", n_labels, id_), feature, cls, cost, ())


def money(book):
    return book.spent, book.reserved


def test_money_by_hand():
    book = QueryBook.empty(2, 2).ask(opened(1)).ask(opened(2, feature=1, cost=0.5))
    assert money(book) == (0, 7.5)
    book, query = book.answer(1, ("u",))
    assert money(book) == (2, 5.5)
    assert query.n_missing == 2
    book, query = book.answer(1, ("v", "u"))
    assert query.answers == ("u", "v", "u")
    assert money(book) == (6, 1.5)
    assert [*book.open_queries] == [2]
    assert book.n_labels.tolist() == [3, 0]
    assert book.observed.tolist() == [[0, 1], [0, 0]]
    assert book.pending.tolist() == [[0, 0], [0, 1]]
    book = book.close(2)
    assert money(book) == (6, 0)
    assert book.observed.sum() == 1  # a query without answers is no observation
    assert book.n_asked == 2


def test_a_partly_answered_query_counts_as_an_observation_when_closed():
    book, _ = QueryBook.empty(1, 2).ask(opened(1)).answer(1, ("u",))
    assert book.observed.sum() == 0
    book = book.close(1)
    assert book.observed.tolist() == [[0, 1]]
    assert money(book) == (2, 0)


def test_a_feature_is_askable_until_all_its_classes_are_exhausted():
    book = QueryBook.empty(2, 2).ask(opened(1)).exhaust(1)
    assert book.available.tolist() == [[True, False], [True, True]]
    assert book.askable.tolist() == [True, True]
    book = book.ask(opened(2, cls=0)).exhaust(2)
    assert book.askable.tolist() == [False, True]
    assert money(book) == (0, 0)


def test_a_book_is_never_changed():
    before = QueryBook.empty(2, 2).ask(opened(1))
    copies = [np.copy(field) for field in before[4:]]
    before.answer(1, ("u", "u", "u"))
    before.exhaust(1)
    before.close(1)
    before.ask(opened(2))
    assert money(before) == (0, 6)
    assert [*before.open_queries] == [1]
    for now, old in zip(before[4:], copies, strict=True):
        np.testing.assert_array_equal(now, old)
        with pytest.raises(ValueError, match="read-only"):
            now[0] = 1
