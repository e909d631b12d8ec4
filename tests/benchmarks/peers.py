"""What users call today: estimators that the pool and the forests are compared with."""

from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler

from tests.benchmarks.sets import OpenSet

LR, RF, HGB = "logistic regression, CV", "random forest", "boosting, tuned"


def columns(X: pd.DataFrame, ordinal: bool = False, scale: bool = True) -> Any:
    """Return a transformer of a data frame: numbers, and categories as one-hot or codes."""
    numbers = [c for c in X if X[c].dtype.kind in "fiub"]
    real = make_pipeline(
        FunctionTransformer(np.asarray, kw_args={"dtype": float}),
        SimpleImputer(keep_empty_features=True),
        *([StandardScaler()] if scale else []),
    )
    if ordinal:
        code = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
    else:
        code = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return make_column_transformer((real, numbers), (code, [c for c in X if c not in numbers]))


def peers(X: pd.DataFrame, y: np.ndarray) -> dict[str, Any]:
    """Return {name: unfitted estimator} for rows of a table."""
    folds = StratifiedKFold(min(5, np.unique(y, return_counts=True)[1].min()))
    regression = LogisticRegressionCV(
        Cs=10, cv=folds, scoring="neg_log_loss", max_iter=2000, use_legacy_attributes=False
    )
    trees = RandomForestClassifier(500, min_samples_leaf=2, random_state=0, n_jobs=1)
    boosting = GridSearchCV(
        HistGradientBoostingClassifier(random_state=0, max_iter=100, early_stopping=False),
        {"learning_rate": [0.05, 0.15], "max_leaf_nodes": [7, 31]},
        scoring="neg_log_loss",
        cv=3,
    )
    return {
        LR: make_pipeline(columns(X), regression),
        RF: make_pipeline(columns(X, ordinal=True), SimpleImputer(), trees),
        HGB: make_pipeline(columns(X, ordinal=True, scale=False), boosting),
    }


def naive_bayes(s: OpenSet, X: pd.DataFrame) -> Any:
    """Return scikit-learn's GaussianNB, after an encoder where columns are not all real."""
    return GaussianNB() if s.kind == "real" else make_pipeline(columns(X), GaussianNB())
