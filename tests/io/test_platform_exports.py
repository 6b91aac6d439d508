"""What Mechanical Turk, Toloka and Label Studio export, as judgements."""

import csv
import io
import json

import pytest

from bayescrowd.data.annotations import Annotations
from bayescrowd.io.file_tables import DelimitedText
from bayescrowd.io.platform_exports import (
    is_mturk,
    is_toloka,
    label_studio_judgements,
    mturk_judgements,
    toloka_judgements,
)

# The columns of a batch result before those of the requester's own form.
MTURK_COLUMNS = [
    "HITId",
    "HITTypeId",
    "Title",
    "Description",
    "Keywords",
    "Reward",
    "CreationTime",
    "MaxAssignments",
    "RequesterAnnotation",
    "AssignmentDurationInSeconds",
    "AutoApprovalDelayInSeconds",
    "Expiration",
    "NumberOfSimilarHITs",
    "LifetimeInSeconds",
    "AssignmentId",
    "WorkerId",
    "AssignmentStatus",
    "AcceptTime",
    "SubmitTime",
    "AutoApprovalTime",
    "ApprovalTime",
    "RejectionTime",
    "RequesterFeedback",
    "WorkTimeInSeconds",
    "LifetimeApprovalRate",
    "Last30DaysApprovalRate",
    "Last7DaysApprovalRate",
]


def delimited(rows, columns, delimiter=","):
    buffer = io.StringIO(newline="")
    writer = csv.DictWriter(buffer, columns, delimiter=delimiter, restval="")
    writer.writeheader()
    writer.writerows(rows)
    return DelimitedText("export", buffer.getvalue().encode(), delimiter)


def mturk(answers, statuses=None):
    """A batch of two HITs with two assignments each; `answers` are the form's columns."""
    n = 4
    columns = [*MTURK_COLUMNS, "Input.url", *answers, "Approve", "Reject"]
    rows = [
        {
            "HITId": f"H{i // 2}",
            "Title": "Cats,\nand dogs",
            "WorkerId": f"A{i % 2}",
            "AssignmentStatus": (statuses or ["Approved"] * n)[i],
            "Input.url": "same.jpg",
            **{name: values[i] for name, values in answers.items()},
        }
        for i in range(n)
    ]
    return delimited(rows, columns)


def toloka(rows, columns=("INPUT:image", "OUTPUT:result", "GOLDEN:result", "ASSIGNMENT:task_id")):
    columns = [*columns, "ASSIGNMENT:worker_id", "ASSIGNMENT:status"]
    return delimited([dict(zip(columns, row, strict=True)) for row in rows], columns, "\t")


def label_studio(*annotations, task_id=1, data=None):
    return {"id": task_id, "data": data or {"image": "a.jpg"}, "annotations": list(annotations)}


def choice(worker, *choices, name="animal", **more):
    value = {"choices": list(choices)}
    result = {"from_name": name, "to_name": "img", "type": "choices", "value": value}
    return {"completed_by": worker, "result": [result], "was_cancelled": False, **more}


def studio_judgements(items, task=None, worker=None, label=None):
    return label_studio_judgements("x.json", json.dumps(items).encode(), task, worker, label)


def rows_of(judgements):
    frame = judgements.frame
    frame = frame if hasattr(frame, "to_dict") else frame.to_pandas()
    columns = [judgements.task, judgements.worker, judgements.label]
    return [
        tuple(None if value != value else value for value in row)  # NaN is not itself
        for row in frame[columns].astype(object).itertuples(index=False, name=None)
    ]


# By hand


def test_mturk_with_one_answer_column():
    table = mturk({"Answer.category.label": ["cat", "dog", "dog", ""]})
    assert is_mturk(table.columns)
    assert rows_of(mturk_judgements(table, None, None, None)) == [
        ("H0", "A0", "cat"),
        ("H0", "A1", "dog"),
        ("H1", "A0", "dog"),
        ("H1", "A1", None),
    ]


def test_mturk_leaves_rejected_work_out_and_keeps_row_numbers():
    table = mturk(
        {"Answer.x": ["cat", "dog", "dog", "cat"]},
        ["Approved", "Rejected", "Submitted", "rejected"],
    )
    judgements = mturk_judgements(table, None, None, None)
    assert rows_of(judgements) == [("H0", "A0", "cat"), ("H1", "A0", "dog")]
    assert [judgements.row_number(i) for i in range(2)] == [2, 4]


def test_mturk_without_status():
    rows = [{"HITId": "H", "WorkerId": "A", "Answer.x": "cat"}]
    table = delimited(rows, ["HITId", "WorkerId", "Answer.x"])
    assert rows_of(mturk_judgements(table, None, None, None)) == [("H", "A", "cat")]


def test_mturk_task_by_input():
    table = mturk({"Answer.x": ["cat", "dog", "dog", "cat"]})
    assert {row[0] for row in rows_of(mturk_judgements(table, "Input.url", None, None))} == {
        "same.jpg"
    }


@pytest.mark.parametrize("label", ["Answer.x", "x"])
def test_mturk_question_by_name(label):
    table = mturk({"Answer.x": list("abab"), "Answer.comment": ["", "nice", "", "meh"]})
    assert [row[2] for row in rows_of(mturk_judgements(table, None, None, label))] == list("abab")


def test_mturk_passes_over_a_field_nobody_filled_in():
    table = mturk({"Answer.comment": [""] * 4, "Answer.x": list("abab")})
    assert mturk_judgements(table, None, None, None).label == "Answer.x"


@pytest.mark.parametrize(
    ("columns", "question"),
    [
        (("Answer.animal.cat", "Answer.animal.dog"), "Answer.animal"),
        (("Answer.cat.cat", "Answer.dog.dog"), "Answer"),
    ],
    ids=["inputs", "crowd-radio-button"],
)
def test_mturk_radio_buttons(columns, question):
    chosen = {
        columns[0]: ["true", "false", "FALSE", "false"],
        columns[1]: ["false", "true", "", "false"],
    }
    judgements = mturk_judgements(mturk(chosen), None, None, None)
    assert judgements.label == question
    assert [row[2] for row in rows_of(judgements)] == ["cat", "dog", None, None]


def test_mturk_check_box_is_a_question_of_its_own():
    table = mturk({"Answer.has_cat.on": ["true", "false", "true", "true"]})
    judgements = mturk_judgements(table, None, None, None)
    assert judgements.label == "Answer.has_cat.on"
    assert [row[2] for row in rows_of(judgements)] == ["true", "false", "true", "true"]


TOLOKA_ROWS = [
    ("a.jpg", "cat", "", "t1", "u1", "APPROVED"),
    ("b.jpg", "dog", "dog", "t2", "u1", "APPROVED"),
    ("", "", "", "", "", ""),
    ("a.jpg", "dog", "", "t1", "u2", "SUBMITTED"),
    ("b.jpg", "cat", "dog", "t2", "u3", "REJECTED"),
    ("b.jpg", "", "dog", "t2", "u4", "SKIPPED"),
    ("b.jpg", "", "dog", "t2", "u2", "APPROVED"),
]


def test_toloka():
    table = toloka(TOLOKA_ROWS)
    assert is_toloka(table.columns)
    judgements = toloka_judgements(table, None, None, None)
    assert rows_of(judgements) == [
        ("t1", "u1", "cat"),
        ("t2", "u1", "dog"),
        ("t1", "u2", "dog"),
        ("t2", "u2", None),
    ]
    assert [judgements.row_number(i) for i in range(4)] == [2, 3, 5, 8]


def test_toloka_with_empty_lines_between_suites():
    data = toloka(TOLOKA_ROWS).data.replace(b"\t\t\t\t\t\r\n", b"\r\n")
    table = DelimitedText("export", data, "\t")
    judgements = toloka_judgements(table, None, None, None)
    assert len(rows_of(judgements)) == 4
    assert [judgements.row_number(i) for i in range(4)] == [2, 3, 5, 8]


def test_toloka_without_task_id_takes_the_only_input():
    rows = [row[:2] + row[4:] for row in TOLOKA_ROWS]
    judgements = toloka_judgements(toloka(rows, ("INPUT:image", "OUTPUT:result")), None, None, None)
    assert rows_of(judgements)[0] == ("a.jpg", "u1", "cat")


def test_toloka_without_status():
    table = delimited(
        [{"OUTPUT:result": "a", "ASSIGNMENT:task_id": "t", "ASSIGNMENT:worker_id": "u"}],
        ["OUTPUT:result", "ASSIGNMENT:task_id", "ASSIGNMENT:worker_id"],
        "\t",
    )
    assert rows_of(toloka_judgements(table, None, None, None)) == [("t", "u", "a")]


@pytest.mark.parametrize("label", ["result", "OUTPUT:result"])
def test_toloka_output_by_name(label):
    rows = [("cat", "fine", "t1", "u1", "APPROVED")]
    table = toloka(rows, ("OUTPUT:result", "OUTPUT:comment", "ASSIGNMENT:task_id"))
    assert rows_of(toloka_judgements(table, None, None, label)) == [("t1", "u1", "cat")]


def test_label_studio():
    items = [
        label_studio(choice(1, "cat"), choice(2, "dog"), task_id=7),
        label_studio(choice(1, "dog"), choice(2, "cat", was_cancelled=True), task_id=5),
        label_studio(task_id=6),
        label_studio(choice(2), task_id=8),
    ]
    judgements = studio_judgements(items)
    assert rows_of(judgements) == [(7, 1, "cat"), (7, 2, "dog"), (5, 1, "dog"), (8, 2, None)]
    assert judgements.label == "animal"
    assert [judgements.row_number(i) for i in range(4)] == [1, 1, 2, 4]


def test_label_studio_workers_as_objects():
    ann = {"id": 3, "email": "ann@x.org", "first_name": ""}
    items = [label_studio(choice(ann, "cat"), choice({"id": 4}, "dog"))]
    assert [row[1] for row in rows_of(studio_judgements(items))] == ["ann@x.org", 4]
    assert [row[1] for row in rows_of(studio_judgements(items, worker="id"))] == [3, 4]


def test_label_studio_task_by_its_data():
    items = [label_studio(choice(1, "cat"), data={"image": "b.jpg", "ref": 9})]
    assert rows_of(studio_judgements(items, task="image"))[0][0] == "b.jpg"


def test_label_studio_one_of_several_questions():
    both = choice(1, "cat")
    both["result"] += choice(1, "good", name="quality")["result"]
    box = {"from_name": "box", "type": "rectanglelabels", "value": {"rectanglelabels": ["x"]}}
    both["result"].append(box)
    items = [label_studio(both, choice(2, "dog"))]
    assert [row[2] for row in rows_of(studio_judgements(items, label="quality"))] == ["good", None]


def test_label_studio_json_min():
    items = [
        {"image": "a.jpg", "id": 1, "animal": "cat", "annotator": 1, "annotation_id": 10},
        {"image": "a.jpg", "id": 1, "animal": "dog", "annotator": 2, "annotation_id": 11},
        {"image": "b.jpg", "id": 2, "annotator": 2, "annotation_id": 12},
    ]
    judgements = studio_judgements(items, label="animal")
    assert rows_of(judgements) == [(1, 1, "cat"), (1, 2, "dog"), (2, 2, None)]
    by_image = studio_judgements(items, task="image", label="animal")
    assert [row[0] for row in rows_of(by_image)] == ["a.jpg", "a.jpg", "b.jpg"]


def test_other_tables_are_no_export():
    assert not is_mturk(["HITId", "WorkerId", "label"])
    assert not is_mturk(["Answer.x", "worker"])
    assert not is_toloka(["task", "worker", "label"])


# Control


def test_control_rejected_work_would_change_the_annotations():
    answers = {"Answer.x": ["cat", "dog", "dog", "cat"]}
    sizes = []
    for statuses in (["Approved"] * 4, ["Approved", "Rejected", "Approved", "Approved"]):
        judgements = mturk_judgements(mturk(answers, statuses), None, None, None)
        sizes.append(Annotations.from_frame(*judgements[:4]).n_labels)
    assert sizes == [4, 3]


# Bad input


@pytest.mark.parametrize(
    ("answers", "label", "message"),
    [
        (
            {"Answer.x": list("abab"), "Answer.y": list("cdcd")},
            None,
            "export: the questions are 'Answer.x', 'Answer.y'; choose one with label=",
        ),
        ({"Answer.x": list("abab")}, "z", "no question 'z' for the label; the questions are 'Ans"),
        ({"Answer.x": [""] * 4}, None, r"there is no question with labels; expected Answer\."),
        (
            {"Answer.q.a": ["true"] * 4, "Answer.q.b": ["false", "true", "false", "false"]},
            None,
            "export: row 3: the columns 'Answer.q.a', 'Answer.q.b' are true at once",
        ),
    ],
)
def test_bad_mturk(answers, label, message):
    with pytest.raises(ValueError, match=message):
        mturk_judgements(mturk(answers), None, None, label)


def test_mturk_all_rejected():
    table = mturk({"Answer.x": list("abab")}, ["Rejected"] * 4)
    with pytest.raises(ValueError, match="export: all 4 rows are rejected or unfinished"):
        mturk_judgements(table, None, None, None)


def test_mturk_column_absent():
    with pytest.raises(ValueError, match=r"export: no column 'Input\.id' for the task; the col"):
        mturk_judgements(mturk({"Answer.x": list("abab")}), "Input.id", None, None)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            ("INPUT:a", "INPUT:b", "OUTPUT:result"),
            "no column 'ASSIGNMENT:task_id' for the task; .* choose one with task=",
        ),
        (
            ("ASSIGNMENT:task_id", "OUTPUT:result", "OUTPUT:comment"),
            "the questions are 'OUTPUT:result', 'OUTPUT:comment'; choose one with label=",
        ),
        (("ASSIGNMENT:task_id", "INPUT:a", "INPUT:b"), "there is no question with labels"),
    ],
)
def test_bad_toloka(columns, message):
    with pytest.raises(ValueError, match=message):
        toloka_judgements(toloka([("x", "y", "z", "u1", "APPROVED")], columns), None, None, None)


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ({"id": 1}, "x.json: expected a Label Studio export, an array of tasks"),
        ([], "x.json: expected a Label Studio export, an array of tasks"),
        ([1, 2], "x.json: row 1 of the array: expected a Label Studio task"),
        ([{"task": 1, "worker": 2}], "row 1 of the array: expected a Label Studio task with its"),
        ([label_studio(choice(1, "cat")), {"id": 2}], "row 2 of the array: expected a Label Stu"),
        ([{"id": 1, "annotations": 3}], "row 1 of the array: 'annotations' is not an array; exp"),
        (
            [label_studio(3)],
            "row 1 of the array: an annotation is not an object; expected a Label Studio export",
        ),
        ([label_studio({"result": {}})], "row 1 of the array: 'result' is not an array; expected"),
        (
            [label_studio({"result": [4]})],
            "row 1 of the array: a result is not an object; expected",
        ),
        ([label_studio()], "there is no question with labels"),
        (
            [label_studio(choice(1, "cat")), label_studio(choice(1, "cat", "dog"))],
            "row 2 of the array: worker 1 made 2 choices for 'animal'; expected a single one",
        ),
        (
            [label_studio(choice(1, "cat"), choice(2, "good", name="quality"))],
            "the questions are 'animal', 'quality'; choose one with label=",
        ),
        ([{"id": 1, "annotator": 1, "animal": "cat"}], "x.json: no column for the label; the col"),
    ],
)
def test_bad_label_studio(items, message):
    with pytest.raises(ValueError, match=message):
        studio_judgements(items)


def test_bad_label_studio_options():
    items = [label_studio(choice(1, "cat"))]
    with pytest.raises(ValueError, match="no key 'url' for the task in 'data'; the keys are 'ima"):
        studio_judgements(items, task="url")
    with pytest.raises(ValueError, match="no question 'colour' for the label; the questions are"):
        studio_judgements(items, label="colour")


def test_label_studio_without_worker():
    judgements = studio_judgements([label_studio(choice(1, "a")), label_studio(choice(None, "b"))])
    with pytest.raises(ValueError, match=r"row 2, column 'completed_by': missing worker id"):
        Annotations.from_frame(*judgements[:4], row_number=judgements.row_number)


def test_label_studio_json_min_with_several_choices():
    items = [{"id": 1, "annotator": 1, "animal": {"choices": ["cat", "dog"]}}]
    judgements = studio_judgements(items, label="animal")
    with pytest.raises(ValueError, match="row 1, column 'animal': found a dict; expected text"):
        Annotations.from_frame(*judgements[:4], row_number=judgements.row_number)


def test_label_studio_not_json():
    with pytest.raises(ValueError, match=r"x\.json: invalid JSON at character 2"):
        label_studio_judgements("x.json", b"[nope]", None, None, None)
