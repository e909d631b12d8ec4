"""What classifiers without a closed form share."""

from bayesgen.estimators.classifier import GenerativeClassifier


class SampledClassifier(GenerativeClassifier):
    """What they share: `fit` samples, by the constructor's `draws`, `tune`, `chains`."""

    def _set_sampler(self, draws: int, tune: int, chains: int, random_state: int | None) -> None:
        """Keep the constructor arguments that all of them have."""
        self.draws = draws
        self.tune = tune
        self.chains = chains
        self.random_state = random_state
