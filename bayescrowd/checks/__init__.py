"""What is refused before it is tried.

* `parameters`: declared constraints of arguments, checked by one decorator.
* `memory`: how much memory there is, and whether a computation fits.
"""
