from bayescrowd.experiments.engine.command import reproduce
from bayescrowd.experiments.engine.label_errors import CROWDS


def test_sizes_of_the_crowds_are_the_published_ones(tmp_path, capsys, crowd):
    for each in CROWDS:
        crowd(each.name)
    reproduce("mi-table1", folder=tmp_path, n_jobs=1)
    assert capsys.readouterr().out.endswith("\n20 of 20 published cells match.\n")
