"""
Which labels are wrong?
=======================

The probability that a label is wrong, from exact leave-one-out; three labels are.
"""

import bayesgen as bg

X, y = bg.datasets.load_penguins()
y[[4, 150, 201]] = "Gentoo", "Chinstrap", "Adelie"
clf = bg.MixedNB().fit(X, y)
bg.plots.plot_label_errors(bg.label_errors(clf, X, y), most=12)
