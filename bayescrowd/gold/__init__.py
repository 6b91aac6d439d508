"""What a few gold labels are good for besides a better fit.

* `prevalence`: the share of each class, with an interval that covers, by the methods of `shares`.
* `suggestions`: which tasks to send for gold.
"""
