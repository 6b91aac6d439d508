"""Published tables and figures, rerun on the real data: measured beside published.

One small module per table or figure. It defines `EXPERIMENT`, an
`bayescrowd.experiments.experiment.Experiment`: the cells with their published values, a function
that measures one part of them for one seed, and a function that draws the outcome. To add one,
write the module and name it in `catalogue.py`; running, resuming, judging, printing and writing
are the same for all.
"""
