"""Words of the page: names of axes and columns, numbers as text, and what each word means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from initrate.report._colours import label_style
from initrate.statistics import median_coverage, median_interval

_AXES = {
    "gamma": ("γ", "initialization rate γ"),
    "depth": ("depth", "depth (layers)"),
    "n_layers": ("depth", "depth (layers)"),
    "lr": ("lr", "learning rate"),
    "weight_decay": ("weight decay", "weight decay"),
    "d_model": ("width", "width (d_model)"),
    "pool": ("pool", "sequences in the data set"),
}

COLUMNS = {
    "inferential_accuracy": "inferential",
    "symmetric_accuracy": "symmetric",
    "seen_accuracy": "seen pairs",
    "training_accuracy": "training",
    "probe_accuracy": "probe",
    "commutes": "commutes",
}


def axis_words(name: str) -> tuple[str, str]:
    """Return an axis in short and in full.

    >>> axis_words("model.n_layers"), axis_words("gamma_qk")
    (('depth', 'depth (layers)'), ('γ of qk', 'initialization rate γ of qk'))
    """
    last = name.rsplit(".", 1)[-1]
    role = last.removeprefix("gamma_") if last.startswith("gamma_") else last
    if role != "by_role" and (role != last or "gamma_by_role" in name):
        role = role.replace("_", " ")
        return f"γ of {role}", f"initialization rate γ of {role}"
    words = last.replace("_", " ")
    return _AXES.get(last, (words, words))


def text_of(found: object) -> str:
    """Return an axis value as short text.

    >>> text_of(0.30000000000000004), text_of(0.0001), text_of(12000), text_of(True)
    ('0.3', '1e-4', '12,000', 'yes')
    """
    if found is None:
        return "none"
    if isinstance(found, bool):
        return "yes" if found else "no"
    if isinstance(found, int):
        return f"{found:,}"
    if isinstance(found, float):
        return _powered(found) if _is_extreme(found) else f"{found:.6g}"
    if isinstance(found, list | tuple):
        return " ".join(text_of(part) for part in found) or "none"
    return str(found)


def texts_of(values: Sequence[object]) -> tuple[str, ...]:
    """Return an axis' values as short texts of one kind.

    >>> texts_of([0.8, 0.9, 1.0]), texts_of([0.003, 0.01, 0.1]), texts_of([5e-4, 1e-3])
    (('0.8', '0.9', '1.0'), ('0.003', '0.01', '0.1'), ('5e-4', '1e-3'))
    """
    floats = [found for found in values if isinstance(found, float)]
    texts = tuple(text_of(found) for found in values)
    if len(floats) < len(texts) or not floats:
        return texts
    if any(_is_extreme(found) for found in floats):
        return tuple(_powered(found) for found in floats)
    # Steps of one size line up with equal digits; steps by factors would feign precision.
    if not max(floats) <= 5 * min(floats):
        return texts
    digits = max(len(text.partition(".")[2]) for text in texts)
    return tuple(f"{found:.{digits}f}" for found in floats)


def _is_extreme(found: float) -> bool:
    return found != 0 and not 1e-3 <= abs(found) < 1e6


def _powered(found: float) -> str:
    if found == 0:
        return "0"
    mantissa, exponent = f"{found:.2e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"


def share(found: float | None) -> str:
    """Return a share with two digits, or a dash where there is none; 1.00 is kept for all of them.

    >>> share(0.954), share(0.9999), share(1.0), share(None)
    ('0.95', '0.99', '1.00', '–')
    """
    if found is None:
        return "–"
    return "0.99" if 0.99 < found < 1 else f"{found:.2f}"


def count_of(number: int, word: str) -> str:
    """Return a count with its word.

    >>> count_of(1, "run"), count_of(3, "run")
    ('1 run', '3 runs')
    """
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def all_words(number: int, word: str) -> str:
    """Return all of several things, as a sentence begins with them.

    >>> all_words(2, "run"), all_words(3, "fitted run")
    ('Both runs', 'All 3 fitted runs')
    """
    return f"Both {word}s" if number == 2 else f"All {count_of(number, word)}"


def enumerate_words(parts: list[str]) -> str:
    """Return the parts as a list in a sentence.

    >>> enumerate_words(["a", "b", "c"])
    'a, b and c'
    """
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def seeds_words(n_seeds: int, crossed: Mapping[str, int]) -> str:
    """Return the seeds of a study; those crossed with each other are not counted as one number.

    >>> seeds_words(3, {}), seeds_words(1, {"init": 2, "order": 2})
    ('3 seeds', '2 init seeds × 2 order seeds')
    """
    factors = {"": n_seeds, **crossed}
    words = [count_of(n, f"{name} seed".strip()) for name, n in factors.items() if n > 1]
    return " × ".join(words) or "1 seed"


def spread_words(values: Sequence[float], seeds: str = "", n_runs: int = 0) -> str:
    """Return how far seeds spread, and how surely that holds the median; "one seed" for one.

    Of crossed seeds, which `seeds` says in words and which make `n_runs` runs, nothing is covered:
    runs that share a seed are not independent.

    >>> spread_words([0.2, 0.5, 0.9]), spread_words([0.2])
    ('range of 3 seeds 0.20 to 0.90 (covers 75 %)', 'one seed')
    >>> spread_words([0.2, 0.9, 0.5, 0.4], "2 init seeds × 2 order seeds", 4)
    'range of 4 runs, 2 init seeds × 2 order seeds: 0.20 to 0.90'
    """
    if len(values) < 2:
        one = "run" if seeds else "seed"
        return f"one {one}" if values else f"no {one}"
    if seeds:
        out_of = "" if len(values) == n_runs else "out of "
        ends = f"{share(min(values))} to {share(max(values))}"
        return f"range of {len(values)} runs, {out_of}{seeds}: {ends}"
    _, low, high = median_interval(values)
    whole = (low, high) == (min(values), max(values))
    return (
        f"{'range' if whole else 'interval'} of {len(values)} seeds {share(low)} to {share(high)} "
        f"(covers {_percent(len(values))} %)"
    )


def _percent(n: int) -> int:
    # Rounded down: a coverage is never told larger than it is.
    return int(100 * median_coverage(n))


def label_words(label: str) -> str:
    """Return a label as words.

    >>> label_words("data_memorized")
    'data memorized'
    """
    return label_style(label).name


def duration(seconds: float) -> str:
    """Return a length of time in words.

    >>> duration(8.2), duration(95), duration(7260)
    ('8.2 s', '1 min 35 s', '2 h 1 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60:,} h {minutes % 60} min"
