"""Names are found in any spelling, and unknown ones answered with the closest."""

import argparse

import pytest

from bayescrowd.cli import main
from bayescrowd.cli.arguments import METHODS, method_name
from bayescrowd.cli.budget_runs import policy_name
from bayescrowd.cli.names import known_name, unknown_option
from bayescrowd.cli.sampling import model_name

# Names in any spelling


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("spell", [str, str.upper, str.title, lambda text: text.replace("-", "_")])
def test_methods_are_found_in_any_spelling(name, spell):
    assert method_name(spell(name)) == name
    assert method_name(spell(name).replace("-", "")) == name


@pytest.mark.parametrize("name", METHODS)
def test_methods_are_found_by_their_class(name):
    assert method_name(METHODS[name].estimator) == name
    assert method_name(METHODS[name].estimator.lower()) == name


def test_models_and_policies_are_found_in_any_spelling():
    assert model_name("Dawid-Skene") == model_name("DawidSkene") == "dawid_skene"
    assert policy_name("bleafs") == policy_name("B_LEAFS") == policy_name("BLeafs") == "b-leafs"
    assert policy_name("B-LEAFS-revisit") == "b-leafs-revisit"


def test_no_two_names_differ_in_case_and_separators_alone():
    letters = [name.replace("-", "").casefold() for name in METHODS]
    assert len(set(letters)) == len(letters)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("mac", "did you mean mace?"),
        ("GALD", "did you mean glad?"),
        ("xyz", "expected one of glad, mace"),
        ("x" * 90, "expected one of glad, mace"),
    ],
)
def test_unknown_names(text, hint):
    with pytest.raises(argparse.ArgumentTypeError) as caught:
        known_name(text, {"glad": "glad", "mace": "mace"}, "method")
    assert str(caught.value).startswith("no method 'x" if text[0] == "x" else f"no method {text!r}")
    assert str(caught.value).endswith(hint)
    assert len(str(caught.value)) < 100


def test_a_class_that_may_be_meant_is_suggested_by_the_name_of_its_method():
    with pytest.raises(argparse.ArgumentTypeError, match=r"did you mean dawid-skene\?"):
        method_name("DawidSkeen")


# Options


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["x.csv", "--out", "-"], None),
        (["x.csv", "--out=-"], None),
        (["x.csv", "--out", "-1"], None),
        (["x.csv", "--out", "--no option"], None),
        (["x.csv", "--", "--oot"], None),
        (["x.csv", "-"], None),
        (["x.csv", "--oot", "-"], "no option --oot; did you mean --out?"),
        (["--oot=-"], "no option --oot; did you mean --out?"),
        (["-out"], "no option -out; did you mean --out?"),
        (["-q"], "no option -q"),
        (["--zzz"], "no option --zzz"),
    ],
)
def test_unknown_options(arguments, expected):
    assert unknown_option(arguments, ["--out", "-h", "--help"]) == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--verson", "bayescrowd: no option --verson; did you mean --version?"),
        ("agregate x.csv", "bayescrowd: no command 'agregate'; did you mean aggregate?"),
        ("agregate --methd x", "bayescrowd: no command 'agregate'; did you mean aggregate?"),
        ("xyzzy", "bayescrowd: no command 'xyzzy'; expected one of demo, aggregate, "),
        ("datasets fech", "bayescrowd datasets: no action 'fech'; did you mean fetch?"),
        ("datasets fetch bluebrd", "bayescrowd: no data set 'bluebrd'; did you mean bluebird?"),
        ("budget simluate x", "bayescrowd budget: no part 'simluate'; did you mean simulate?"),
        ("budget simulate x --polcy a", "no option --polcy; did you mean --policy?"),
        ("budget simulate x --features 2 --budget 9 --policy robin", "no policy 'robin'; "),
        (
            "budget simulate nursey --features 2 --budget 9",
            "bayescrowd: nursey: there is no such file; did you mean nursery?",
        ),
        ("aggregate x.csv --truht t.csv", "bayescrowd aggregate: no option --truht; did you mean"),
        ("aggregate --truht t.csv", "bayescrowd aggregate: no option --truht; did you mean"),
        ("aggregate x.csv --method GLADD", "no method 'GLADD'; did you mean glad?"),
        ("aggregate x.csv --format cvs", "invalid choice 'cvs'; did you mean csv?"),
        ("aggregate x.csv --duplicates frist", "invalid choice 'frist'; did you mean first?"),
        ("aggregate blubird", "blubird: there is no such file; did you mean bluebird, a data set?"),
        ("panel verdict.csv --glod g.csv", "bayescrowd panel: no option --glod; did you mean"),
        ("posterior x.csv --method GIBS", "invalid choice 'GIBS'; did you mean gibbs?"),
        ("posterior x.csv --model one_con", "no model 'one_con'; did you mean one_coin?"),
        ("compare x.csv --models one_coin,mac", "no model 'mac'; did you mean mace?"),
        ("workers x.csv --estimator clas", "invalid choice 'clas'; did you mean class?"),
        ("bench x --methods DawidSken", "no method 'DawidSken'; did you mean DawidSkene?"),
        ("bench x --reference autoagregator", "did you mean AutoAggregator?"),
        ("multiselect a b --budgte 30", "no option --budgte; did you mean --budget?"),
        ("multiselect a b --budget 30 --method ful", "invalid choice 'ful'; did you mean full?"),
        ("reproduce mi-tabel1", "unknown experiment 'mi-tabel1'; did you mean mi-table1?"),
    ],
)
def test_did_you_mean_is_one_line(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert main(arguments.split()) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
    assert captured.err.count("\n") == 1


def test_choices_may_be_typed_in_upper_case(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for arguments in ("posterior x.csv --method GIBBS", "aggregate x.csv --format CSV"):
        assert main(arguments.split()) == 2
        assert "x.csv: there is no such file" in capsys.readouterr().err


def test_a_file_may_be_named_like_a_command_in_another_case(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["aggregate", "WORKERS"]) == 2
    assert capsys.readouterr().err == "bayescrowd: WORKERS: there is no such file\n"


def test_what_is_no_option_is_left_to_argparse(capsys):
    assert main(["demo", "now"]) == 2
    assert "unrecognized arguments: now" in capsys.readouterr().err
