"""
LearningCurveDisplay: how many rows are enough?
===============================================

Log loss of folds that were left out, by the number of training rows: scikit-learn's
``LearningCurveDisplay`` takes every classifier of this package.
"""

import matplotlib.pyplot as plt
from sklearn.model_selection import LearningCurveDisplay, StratifiedShuffleSplit

import bayesgen as bg

X, y = bg.datasets.load_penguins()
X = X.select_dtypes("number").dropna()
y = y[X.index]
models = {"naive": bg.GaussianNB(), "one covariance per class": bg.QuadraticDiscriminant()}

_, ax = plt.subplots()
for clf in models.values():
    LearningCurveDisplay.from_estimator(
        clf,
        X,
        y,
        train_sizes=[20, 40, 80, 160],
        cv=StratifiedShuffleSplit(20, random_state=0),
        scoring="neg_log_loss",
        negate_score=True,
        score_type="test",
        ax=ax,
    )
ax.set_ylabel("log loss (nats)")
ax.legend(ax.lines, list(models))
