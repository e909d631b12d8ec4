"""Classifiers without a closed form: fitted by NUTS, used like all others."""
