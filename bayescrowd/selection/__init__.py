"""Which workers, features and repeats carry the information."""
