"""The anchor task: composite functions of a key item, one pair of anchors held out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, cast

from initrate.errors import InputError, in_line, unknown
from initrate.tasks._checks import (
    check_groups,
    check_pairs,
    check_size,
    check_split,
    check_targets,
    check_tokens,
    named,
    override_items,
    pair_of,
    pairs_of,
    whole,
)
from initrate.tasks._evaluation import evaluation
from initrate.tasks._maps import (
    RANDOM_GROUPS,
    GivenMap,
    Map,
    Pair,
    is_whole,
    plain_map,
    tables,
    tabulated,
)
from initrate.tasks._score import scalars, score
from initrate.tasks._sequences import training_batches
from initrate.tasks._task import Integers, Score, Split


@dataclass(frozen=True, slots=True)
class AnchorTask:
    """The anchor task of arXiv 2405.05409; the defaults are its main set-up, 34-wrong.

    A sequence holds one key item x with `n_anchors` anchors right after it; all other tokens are
    noise. The answer, asked for at the last position, is g(g(x; a1); a2): the anchors' maps in
    order, first anchor first. "Pair" is said of any number of anchors in a row.

    Maps may be given as shifts, tables, or functions (stored as tables), pairs as (4, 3) or "4,3".

    >>> AnchorTask().answer(23, (1, 2)), AnchorTask().answer(23, (3, 4))
    (29, 17)
    """

    variant: str = "34-wrong"
    """The name shown; "own" where maps or anchors are one's own and no name is given."""
    length: int = 9
    """Tokens of a sequence; without noise it is always 1 + n_anchors."""
    key_low: int = 20
    key_high: int = 99
    """The largest key (inclusive)."""
    noise_low: int = 20
    noise_high: int = 99
    vocabulary: int = 128
    anchors: tuple[int, ...] = (1, 2, 3, 4)
    maps: Sequence[GivenMap] | Mapping[int, GivenMap] = (5, 1, -2, -8)
    """One map an anchor, in the anchors' order."""
    n_anchors: int = 2
    """How many anchors follow the key."""
    noise: bool = True
    """False: sequences of the key and its anchors alone."""
    unseen: tuple[Pair, ...] = ((4, 3),)
    """Pairs held out of training; the first one is the primary pair of all scores."""
    overrides: Sequence[tuple[Pair, GivenMap]] | Mapping[Any, GivenMap] | None = None
    """Seen pairs whose answer is this map of the key, not the composition. Left out, it is x-6 for
    (3, 4), the exception of 34-wrong; with anchors or maps of one's own there is none."""
    probe: tuple[Pair, ...] = ()
    """More pairs held out: do answers on other unseen pairs compose?"""
    random_groups: int = 0
    """So many unordered pairs of anchors get symmetric answers that no composition gives."""
    split_modulus: Literal["code", "paper"] | int = "code"
    """A key x at position p is a test key where x mod this = p. "code": the length, as in the
    authors' code; "paper": the number of key positions, as in Appendix C."""
    pool: int | None = None
    """Training sequences drawn once; None: a stream, new ones at every step."""

    def __post_init__(self) -> None:
        def put(name: str, found: object) -> None:
            object.__setattr__(self, name, found)

        name = self.variant
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            raise InputError(
                f"task variant is {in_line(name)}: expected a name of printable characters"
            )
        for name in ("key_low", "key_high", "noise_low", "noise_high", "random_groups"):
            whole(name, getattr(self, name), least=0)
        whole("n_anchors", self.n_anchors, least=1, most=16)
        whole("length", self.length, least=1)
        whole("vocabulary", self.vocabulary, least=1)
        if self.pool is not None:
            whole("pool", self.pool, least=1)
        if not isinstance(self.noise, bool):
            raise InputError(f"task noise is {in_line(self.noise)}: expected true or false")
        if not self.noise:
            put("length", 1 + self.n_anchors)
        modulus = self.split_modulus
        if not isinstance(modulus, str) or modulus not in ("code", "paper"):
            if isinstance(self.split_modulus, str):
                raise unknown("split_modulus", self.split_modulus, ["code", "paper"])
            whole("split_modulus", self.split_modulus, least=1)
        put("anchors", _anchors(self.anchors))
        check_tokens(self)
        check_size(self)
        put("maps", _maps(self))
        own = _has_own_maps(self)
        if own and self.variant == _USUAL_VARIANT:
            put("variant", "own")
        if self.overrides is None:
            put("overrides", () if own else _EXCEPTION)
        expected: dict[str, Any] = {"anchors": self.anchors, "n_anchors": self.n_anchors}
        put("unseen", pairs_of(self.unseen, what="held-out pair", **expected))
        put("probe", pairs_of(self.probe, what="probe pair", **expected))
        put("overrides", _overrides(self))
        check_groups(self)
        check_pairs(self)
        check_split(self)
        check_targets(self)

    @property
    def n_positions(self) -> int:
        """How many places the key may have."""
        return self.length - self.n_anchors

    @property
    def n_noise(self) -> int:
        """How many tokens of a sequence are noise."""
        return self.length - self.n_anchors - 1

    @property
    def modulus(self) -> int:
        """The modulus of the split of keys by value and position."""
        if self.split_modulus == "code":
            return self.length
        if self.split_modulus == "paper":
            return self.n_positions
        return cast(int, self.split_modulus)

    @property
    def plain_maps(self) -> tuple[Map, ...]:
        """The stored maps: shifts and tables, one an anchor."""
        return cast("tuple[Map, ...]", self.maps)

    @property
    def plain_overrides(self) -> tuple[tuple[Pair, Map], ...]:
        """The stored overrides: pairs and their maps."""
        return cast("tuple[tuple[Pair, Map], ...]", self.overrides)

    @property
    def group_pairs(self) -> tuple[Pair, ...]:
        """The pairs of the random groups, both orders of each."""
        chosen = RANDOM_GROUPS[: self.random_groups]
        return tuple(order for pair, _ in chosen for order in (pair, pair[::-1]))

    @property
    def overridden(self) -> dict[Pair, Map]:
        """Every seen pair whose answer is not the composition, with the map that gives it."""
        found = dict(self.plain_overrides)
        for pair, shift in RANDOM_GROUPS[: self.random_groups]:
            found[pair] = found[pair[::-1]] = shift
        return found

    @property
    def primary(self) -> Pair | None:
        """The unseen pair that scores and labels are about; None where nothing is held out."""
        return self.unseen[0] if self.unseen else None

    def answer(self, key: int, pair: Pair) -> int:
        """Return the designated answer.

        >>> AnchorTask().answer(50, (4, 3))
        40
        """
        known = tables(self)
        found = pair_of(pair, anchors=self.anchors, n_anchors=self.n_anchors, what="pair")
        if not is_whole(key) or not self.key_low <= key <= self.key_high:
            raise InputError(
                f"key {in_line(key)}: expected a whole number from {self.key_low} to "
                f"{self.key_high}"
            )
        return int(known.targets[known.row(found), key - self.key_low])

    def training_batches(
        self, *, pool_seed: int, order_seed: int, first_step: int, n_steps: int, batch: int
    ) -> tuple[Integers, Integers]:
        """Return tokens [n_steps, batch, length] and targets [n_steps, batch] of these steps.

        A step's batch depends on the seeds, the step and the batch size alone. From a pool, epochs
        are permuted by `order_seed` and the last, partial batch of an epoch is dropped.
        """
        return training_batches(
            self,
            pool_seed=pool_seed,
            order_seed=order_seed,
            first_step=first_step,
            n_steps=n_steps,
            batch=batch,
        )

    def evaluation(self, *, seed: int, pool_seed: int, exhaustive: bool) -> tuple[Split, ...]:
        """Return the splits to answer, named as in `SPLITS`; empty ones are left out.

        Exhaustive: all (key, position) cells of the split's key type for every pair, 8 noise draws
        each (1 on seen pairs with training keys); else a sample of 512 for curves.
        """
        return evaluation(self, seed=seed, pool_seed=pool_seed, exhaustive=exhaustive)

    def score(self, splits: Sequence[Split], predictions: Sequence[Integers]) -> Score:
        """Return the score of one model's predictions, one array [n_sequences] a split."""
        return score(self, splits, predictions)

    def scalars(
        self, splits: Sequence[Split], predictions: Sequence[Integers]
    ) -> dict[str, float | int | None]:
        """Return the plain numbers of `score` alone: all that a curve needs."""
        return scalars(self, splits, predictions)

    def to_dict(self) -> dict[str, Any]:
        """Return the task as plain values that TOML and JSON can hold; `pool` only if there is one.

        >>> AnchorTask.from_dict(AnchorTask(pool=1000).to_dict()) == AnchorTask(pool=1000)
        True
        """
        found: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "overrides":
                value = {named(pair): _plain(answer) for pair, answer in value}
            elif isinstance(value, tuple):
                value = _plain(value)
            if value is not None:
                found[field.name] = value
        return found

    @classmethod
    def from_dict(cls, given: Mapping[str, object]) -> AnchorTask:
        """Return the task of a mapping of fields; a field that is not named has its default."""
        if not isinstance(given, Mapping):
            raise InputError(f"the task is {in_line(given)}: expected a table of its fields")
        names = [field.name for field in fields(cls)]
        for name in given:
            if name not in names:
                raise unknown("task field", name, names)
        return cls(**cast("dict[str, Any]", dict(given)))


def _has_own_maps(task: AnchorTask) -> bool:
    """Say whether anchors or maps are not the paper's: its exception is one to its maps alone."""
    usual = {field.name: field.default for field in fields(AnchorTask)}
    return any(getattr(task, name) != usual[name] for name in ("anchors", "maps"))


_USUAL_VARIANT = "34-wrong"
_EXCEPTION: tuple[tuple[Pair, Map], ...] = (((3, 4), -6),)


def _plain(value: object) -> object:
    return [_plain(one) for one in value] if isinstance(value, tuple) else value


def _anchors(given: object) -> tuple[int, ...]:
    if not isinstance(given, Sequence) or isinstance(given, str) or not given:
        raise InputError(f"task anchors are {in_line(given)}: expected a list of tokens")
    found = tuple(whole("anchor", anchor, least=0) for anchor in given)
    if len(set(found)) < len(found):
        raise InputError(f"task anchors are {list(found)}: expected each token once")
    return found


def _maps(task: AnchorTask) -> tuple[Map, ...]:
    given = task.maps
    if isinstance(given, Mapping):
        by_anchor = {str(anchor): found for anchor, found in given.items()}
        if set(by_anchor) != {str(anchor) for anchor in task.anchors}:
            raise InputError(
                f"the maps name the anchors {', '.join(by_anchor)}: expected a map for each of "
                f"{', '.join(map(str, task.anchors))}"
            )
        given = [by_anchor[str(anchor)] for anchor in task.anchors]
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise InputError(f"task maps are {in_line(given)}: expected one map an anchor")
    if len(given) != len(task.anchors):
        raise InputError(
            f"task maps: found {len(given)} for {len(task.anchors)} anchors, expected one an anchor"
        )
    names = [f"anchor {anchor}" for anchor in task.anchors]
    return tabulated(
        {name: plain_map(one, name=name) for name, one in zip(names, given, strict=True)},
        keys=range(task.key_low, task.key_high + 1),
        n_anchors=task.n_anchors,
    )


def _overrides(task: AnchorTask) -> tuple[tuple[Pair, Map], ...]:
    found: dict[Pair, Map] = {}
    for given, answer in override_items(task.overrides):
        pair = pair_of(
            given, anchors=task.anchors, n_anchors=task.n_anchors, what="overridden pair"
        )
        if pair in found:
            raise InputError(f"pair {named(pair)} is overridden twice: expected it once")
        name = f"pair {named(pair)}"
        (found[pair],) = tabulated(
            {name: plain_map(answer, name=name)},
            keys=range(task.key_low, task.key_high + 1),
            n_anchors=1,
        )
    return tuple(sorted(found.items()))
