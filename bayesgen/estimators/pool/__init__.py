"""Pools of fitted classifiers: exponents and intercepts learned from exact leave-one-out."""

from bayesgen.estimators.pool.log_linear_pool import LogLinearPool

__all__ = ["LogLinearPool"]
