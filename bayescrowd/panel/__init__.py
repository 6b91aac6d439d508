"""Panels of judges, such as language models: everything one wants to know before trusting one.

* `verdict_counts`: who was asked, who abstained, and on what kind of tasks.
* `swaps`: whether judges say the same when the order of the answers is swapped.
* `dropping` (with `drop_costs`): what it would cost to do without a judge.
* `findings`: `PanelReport`, what is known about a panel, and its words.
* `report`: `panel_report`, which brings it all together with labels, shares and the alarm.
"""
