"""How predictors are judged: the evaluation protocol, its conditions, and peers from scikit-learn."""
