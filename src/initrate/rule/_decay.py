"""Weight decay by role: which tensors decay, how strongly, and how it changes over the steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from initrate.errors import InputError, unknown, whole_number
from initrate.rule._checks import finite_number
from initrate.rule._frozen import FrozenMapping
from initrate.rule._record import WeightRecord
from initrate.rule._roles import EMBEDDING_ROLES, KEPT_ROLES, ROLE_GROUPS, ROLES, group_of

DecayPolicy = Literal["all", "matrices", "not_embeddings"]
"""What decays: everything; every weight that a rule may draw, embeddings too, but no bias, norm or
structured tensor; or of these none that is an embedding, a position or the unembedding."""

DecayPairs = tuple[tuple[int, float], ...]
"""(step, factor) pairs: from each step on, weight decay times factor; before the first, times 1."""

DecaySchedule = DecayPairs | Callable[[int], float]
"""Pairs, or a function from the step, counted from 0, to the factor."""

DECAYED, NOT_DECAYED = "decayed", "not decayed"
"""Names of the two groups that a policy alone makes."""

MOST_STEPS, LARGEST_DECAY = 10**9, 1e7
"""Beyond any use."""

_NO_MATRICES = (*KEPT_ROLES, "bias")
_EMBEDDINGS = (*EMBEDDING_ROLES, "unembedding")


def role_decays(policy: DecayPolicy, role: str) -> bool:
    """Return whether the tensors of a role decay.

    >>> [role_decays("not_embeddings", role) for role in ("query", "token_embedding", "norm")]
    [True, False, False]
    """
    if policy == "all":
        return True
    if role in _NO_MATRICES:
        return False
    return policy == "matrices" or role not in _EMBEDDINGS


@dataclass(frozen=True, slots=True)
class Decay:
    """Weight decay of every role: by a policy, and for some roles by a number of their own.

    The keys of `by_role` are roles ("query") or groups ("qk"); what is given for a role wins over
    what is given for its group.

    >>> decay = Decay(0.1, by_role={"qk": 0.05})
    >>> decay.of_role("query"), decay.of_role("value"), decay.of_role("norm")
    (0.05, 0.1, 0.0)
    """

    weight_decay: float
    policy: DecayPolicy = "matrices"
    by_role: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.policy, str) or self.policy not in get_args(DecayPolicy):
            raise unknown("decay", self.policy, get_args(DecayPolicy))
        if not isinstance(self.by_role, Mapping):
            raise InputError(f"by_role is {self.by_role!r}: expected a mapping from roles")
        names = dict.fromkeys((*ROLE_GROUPS, *ROLES))
        for key in self.by_role:
            if not isinstance(key, str) or key not in names:
                raise unknown("role in by_role", key, names)
        by_role = {
            key: decay_number(f"weight decay of {key!r}", x) for key, x in self.by_role.items()
        }
        object.__setattr__(self, "weight_decay", decay_number("weight_decay", self.weight_decay))
        object.__setattr__(self, "by_role", FrozenMapping(by_role))

    def key_of(self, role: str) -> str | None:
        """Return the key of `by_role` that holds for a role, or None."""
        return next((key for key in (role, group_of(role)) if key in self.by_role), None)

    def of_role(self, role: str) -> float:
        """Return the weight decay of a role."""
        key = self.key_of(role)
        if key is not None:
            return self.by_role[key]
        return self.weight_decay if role_decays(self.policy, role) else 0.0

    def of_tensor(self, records: Sequence[WeightRecord]) -> DecayedTensor:
        """Return how one tensor decays, from the records of its parts.

        A tensor whose role is not known follows its being a matrix or not where the policy needs
        no more than that. Where its possible roles, or its parts, decay apart, it has a trouble.
        """
        record = records[0]
        roles = dict.fromkeys(role for part in records for role in part.roles)
        matrix = len(record.shape) > 1
        if any(not part.roles for part in records):
            if self.policy != "not_embeddings" and not self.by_role:
                decays = self.policy == "all" or matrix
                return self._decayed(records, self.weight_decay if decays else 0.0, None)
            # Embeddings of a single row are no matrices, and a policy decays them by their role.
            roles = dict.fromkeys(ROLES if matrix else (*_NO_MATRICES, *self._keys_of_rows()))
        found = {(self.of_role(role), self.key_of(role)) for role in roles}
        if len({number for number, _ in found}) == 1:
            number = next(iter(found))[0]
            keys = {key for _, key in found}
            named = sorted(key or DECAYED for key in keys)
            return self._decayed(records, number, None if keys == {None} else "|".join(named))
        what = record.refuse or f"may be {', '.join(roles)}"
        if any(not part.roles for part in records):
            what = record.refuse or "has a role that is not known"
        elif len(records) > 1:
            what = f"holds {', '.join(roles)}"
        return DecayedTensor(record, 0.0, "", f"{what}, and these decay apart")

    def _keys_of_rows(self) -> tuple[str, ...]:
        return tuple(role for role in EMBEDDING_ROLES if self.key_of(role) is not None)

    def _decayed(
        self, records: Sequence[WeightRecord], number: float, key: str | None
    ) -> DecayedTensor:
        return DecayedTensor(records[0], number, key or (DECAYED if number else NOT_DECAYED), "")


@dataclass(frozen=True, slots=True)
class DecayedTensor:
    """How one tensor decays: in which group, how strongly, or why that cannot be said."""

    record: WeightRecord
    """Of the tensor's first part."""
    weight_decay: float
    group: str
    trouble: str


def refuse_troubles(tensors: Iterable[DecayedTensor]) -> None:
    """Raise the error that names the tensors whose decay cannot be said, if there are any."""
    troubled = [tensor for tensor in tensors if tensor.trouble]
    if troubled:
        names = ", ".join(repr(tensor.record.name) for tensor in troubled[:5])
        fused = troubled[0].record.part
        way = "a tensor decays as a whole:" if fused else "say what they are by layouts=[...], or"
        more = f" and {len(troubled) - 5} more" if len(troubled) > 5 else ""
        raise InputError(
            f"weight decay of {names}{more}: {troubled[0].record.name!r} {troubled[0].trouble}; "
            f"{way} choose a decay that treats these roles alike"
        )


def decay_number(name: str, found: object) -> float:
    """Return a weight decay, or a factor of one, as a float: finite, not negative.

    >>> decay_number("weight_decay", 0.1)
    0.1
    """
    number = finite_number(name, found)
    if number < 0:
        raise InputError(f"{name} is {found!r}: expected a number of at least 0")
    return number


def decay_window(first_step: int, last_step: int) -> DecayPairs:
    """Return the decay schedule that decays from `first_step` up to, not at, `last_step` only.

    >>> decay_window(100, 200)
    ((0, 0.0), (100, 1.0), (200, 0.0))
    """
    whole_number("the first step of a decay window", first_step, least=0, most=MOST_STEPS)
    whole_number("the last step of a decay window", last_step, least=0, most=MOST_STEPS)
    if not first_step < last_step:
        raise InputError(
            f"decay window [{first_step}, {last_step}]: expected two rising steps from 0 on"
        )
    head = ((0, 0.0),) if first_step else ()
    return (*head, (first_step, 1.0), (last_step, 0.0))


def decay_factor(schedule: DecaySchedule, step: int) -> float:
    """Return what weight decay is multiplied by at a step, counted from 0.

    >>> [decay_factor(decay_window(100, 200), step) for step in (99, 100, 199, 200)]
    [0.0, 1.0, 1.0, 0.0]
    >>> decay_factor(lambda step: 0.5**step, 2)
    0.25
    """
    if callable(schedule):
        return decay_number(f"the factor of weight decay at step {step}", schedule(step))
    factor = 1.0
    for first_step, found in schedule:
        if step >= first_step:
            factor = found
    return factor


def check_decay_pairs(name: str, schedule: object) -> None:
    """Raise an error unless the schedule is (step, factor) pairs in the order of the steps."""
    steps: list[int] = []
    for pair in schedule if isinstance(schedule, tuple) else (schedule,):
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise InputError(f"{name} has {pair!r}: expected a tuple of (step, factor) pairs")
        step = whole_number("a step of decay_schedule", pair[0], least=0, most=MOST_STEPS)
        _check_factor(pair[1])
        steps.append(step)
    if steps != sorted(set(steps)):
        raise InputError(f"{name} has steps {steps}: expected rising steps")


def _check_factor(found: object) -> None:
    if not isinstance(found, int | float) or isinstance(found, bool):
        shown = repr(found)
    # Compared before it is made a float, which a whole number of 400 digits cannot be.
    elif 0 <= found < LARGEST_DECAY:
        return
    else:
        large = not isinstance(found, float) and abs(found) >= 10**20
        shown = "beyond all bounds" if large else str(found)
    raise InputError(
        f"a factor of decay_schedule is {shown}: expected a finite number of at least 0.0 and "
        f"below {LARGEST_DECAY}"
    )
