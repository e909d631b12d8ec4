"""What classifiers without a closed form share."""

from typing import Any, ClassVar

from bayesgen.estimators.base import GenerativeClassifier


class SampledClassifier(GenerativeClassifier):
    """What they share: `fit` samples, by the constructor's `draws`, `tune`, `chains`."""

    _priors: ClassVar[tuple[str, ...]] = ()  # constructor arguments that are prior objects
    _target_accept: ClassVar[float | None] = None  # of NUTS, where its own default is too bold

    def _set_sampler(self, draws: int, tune: int, chains: int, random_state: int | None) -> None:
        """Keep the constructor arguments that all of them have."""
        self.draws = draws
        self.tune = tune
        self.chains = chains
        self.random_state = random_state

    def _sample_options(self) -> dict[str, Any]:
        options: dict[str, Any] = {
            "draws": self.draws,
            "tune": self.tune,
            "chains": self.chains,
            "random_seed": self.random_state,
        }
        if self._target_accept is not None:
            options["target_accept"] = self._target_accept
        return options

    def _unsaved(self) -> tuple[str, ...]:
        return self._priors
