"""Why: contributions, mutual information, top words."""
