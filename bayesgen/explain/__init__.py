"""Why: contributions, mutual information, relevance of features."""
