"""A rule: for every role of a model, how its weights are drawn."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Literal, get_args

from initrate.errors import InputError, unknown
from initrate.files import dump_toml, load_toml
from initrate.rule._checks import finite_number, whole_number
from initrate.rule._draws import Draw, Gamma, Keep, Uniform, Zero, as_draw, draw_to_dict
from initrate.rule._frozen import FrozenMapping
from initrate.rule._roles import (
    EMBEDDING_ROLES,
    KEPT_ROLES,
    RESIDUAL_ROLES,
    ROLE_GROUPS,
    WEIGHT_ROLES,
    check_option_key,
    check_role,
    group_of,
)

DEFAULT_GAMMA = 0.5

Bias = Literal["zero", "torch", "keep"]
Residual = Literal["none", "sqrt_2L"]
EmbeddingDIn = Literal["d_model", "vocabulary"]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of initialization: std = d_in ** -gamma for every weight, unless options say more.

    The keys of `gamma_by_role`, `draws` and `d_in_by_role` are roles ("query") or groups ("qk");
    what is given for a role wins over what is given for its group.

    >>> rule = Rule(gamma=0.8, gamma_by_role={"qk": 0.5})
    >>> rule.draw("query"), rule.draw("value")
    (Gamma(gamma=0.5), Gamma(gamma=0.8))
    >>> rule.std("query", d_in=64)
    0.125
    """

    gamma: float | None = None
    """0.5 unless given; None only where every role has a draw of its own."""
    gamma_by_role: Mapping[str, float] = field(default_factory=dict)
    bias: Bias = "zero"
    """Zero, uniform within 1 / sqrt(d_in of the weight), or what the model made."""
    residual: Residual = "none"
    """Whether the two maps of a layer that write into the residual stream are divided by
    sqrt(2 n_layers)."""
    embedding_d_in: EmbeddingDIn = "d_model"
    """What counts as d_in of an embedding: its width, or the number of its rows."""
    draws: Mapping[str, Draw] = field(default_factory=dict)
    d_in_by_role: Mapping[str, Literal["d_model"]] = field(default_factory=dict)
    """Roles that take d_model for their d_in, as the code of arXiv 2501.08537 does."""
    name: str = "formula"

    def __post_init__(self) -> None:
        _check_choices(self)
        gammas = _by_role(self, "gamma_by_role")
        draws = _by_role(self, "draws")
        d_ins = _by_role(self, "d_in_by_role")
        for key in gammas.keys() & draws.keys():
            raise InputError(f"rule gives {key!r} both a gamma and a draw: give one of the two")
        for key in gammas:
            members = ROLE_GROUPS.get(key, ())
            if members and all(role in draws for role in members):
                raise InputError(
                    f"rule gamma_by_role names {key!r}, and each of its roles has a draw of its "
                    "own, so that it has no effect: leave it out, or name the roles themselves"
                )
        for key, found in d_ins.items():
            if found != "d_model":
                raise unknown(f"d_in of {key!r} in d_in_by_role", found, ["d_model"])
            if any(role in EMBEDDING_ROLES for role in (key, *ROLE_GROUPS.get(key, ()))):
                raise InputError(
                    f"rule d_in_by_role names {key!r}: the d_in of embeddings is embedding_d_in"
                )
        _set(
            self,
            gamma_by_role=FrozenMapping(
                {key: finite_number(f"rule gamma of {key!r}", x) for key, x in gammas.items()}
            ),
            draws=FrozenMapping({key: as_draw(x) for key, x in draws.items()}),
            d_in_by_role=FrozenMapping(d_ins),
        )
        needs_gamma = any(self._own_draw(role) is None for role in WEIGHT_ROLES)
        if self.gamma is not None:
            if not needs_gamma:
                raise InputError(
                    f"rule {self.name!r} is given gamma {self.gamma!r}, which would have no "
                    "effect: every role has a draw of its own; leave gamma out"
                )
            _set(self, gamma=finite_number("rule gamma", self.gamma))
        elif needs_gamma:
            _set(self, gamma=DEFAULT_GAMMA)

    def _own_draw(self, role: str) -> Draw | None:
        """Return the draw that is given for this role or its group, or None."""
        for key in (role, group_of(role)):
            if key is not None and key in self.draws:
                return self.draws[key]
            if key is not None and key in self.gamma_by_role:
                return Gamma(self.gamma_by_role[key])
        return None

    def draw(self, role: str) -> Draw:
        """Return how the tensors of a role are drawn.

        >>> Rule(bias="torch").draw("bias")
        Uniform(bound=None, gamma=0.5)
        """
        check_role(role)
        if role in KEPT_ROLES:
            return Keep()
        own = self._own_draw(role)
        if own is not None:
            return own
        if role == "bias":
            return {"zero": Zero(), "torch": Uniform(gamma=0.5), "keep": Keep()}[self.bias]
        assert self.gamma is not None
        return Gamma(self.gamma)

    def residual_divisor(self, role: str, *, n_layers: int | None) -> float:
        """Return what the values of a role are divided by: sqrt(2 n_layers), or 1.

        >>> Rule(residual="sqrt_2L").residual_divisor("mlp_out", n_layers=8)
        4.0
        """
        if self.residual == "none" or check_role(role) not in RESIDUAL_ROLES:
            return 1.0
        if n_layers is None:
            raise InputError(
                f"rule residual is {self.residual!r} and n_layers is not given: "
                f"the std of {role!r} needs the number of layers"
            )
        return math.sqrt(2 * finite_number("n_layers", whole_number("n_layers", n_layers, least=1)))

    def std(self, role: str, *, d_in: int, n_layers: int | None = None) -> float | None:
        """Return the std of the weights of a role, or None where they are kept.

        The residual division is included. `d_in` is taken as it is given; what the rule takes
        for the d_in of a tensor is `tensor_d_in`.

        >>> Rule(gamma=0.5, residual="sqrt_2L").std("mlp_out", d_in=64, n_layers=8)
        0.03125
        """
        std = self.draw(role).std_at(d_in=whole_number("d_in", d_in, least=1))
        if std is None:
            return None
        divided = std / self.residual_divisor(role, n_layers=n_layers)
        if std > 0 and divided == 0:
            raise InputError(f"the std of {role!r} is too small for a float: give a larger one")
        return divided

    def to_dict(self) -> dict[str, object]:
        """Return all fields as plain values; a gamma that is None is left out.

        >>> Rule.from_dict(Rule(gamma=0.8).to_dict()) == Rule(gamma=0.8)
        True
        """
        plain: dict[str, object] = {f.name: getattr(self, f.name) for f in fields(self)}
        if self.gamma is None:
            del plain["gamma"]
        plain["gamma_by_role"] = dict(self.gamma_by_role)
        plain["draws"] = {key: draw_to_dict(draw) for key, draw in self.draws.items()}
        plain["d_in_by_role"] = dict(self.d_in_by_role)
        return {"name": plain.pop("name"), **plain}

    @classmethod
    def from_dict(cls, plain: Mapping[str, object]) -> Rule:
        """Return the rule of these fields; those left out are as in the rule that `name` names.

        >>> Rule.from_dict({"name": "gpt2"}).draw("query")
        Std(std=0.02)
        """
        # The named rules are rules themselves, so their module cannot be imported above.
        from initrate.rule._named import RULES

        if not isinstance(plain, Mapping):
            raise InputError(f"the rule is {plain!r}: expected a table of its options")
        names = [f.name for f in fields(cls)]
        for key in plain:
            if key not in names:
                raise unknown("rule option", key, names)
        name = plain.get("name", "formula")
        base = RULES[name].rule.to_dict() if isinstance(name, str) and name in RULES else {}
        return cls(**{**base, **plain})  # pyright: ignore[reportArgumentType]

    def to_toml(self) -> str:
        """Return the rule as TOML text.

        >>> print(Rule(gamma=0.8).to_toml().splitlines()[1])
        gamma = 0.8
        """
        return dump_toml(self.to_dict())

    @classmethod
    def from_toml(cls, text: str) -> Rule:
        """Return the rule that the TOML text says.

        >>> Rule.from_toml('gamma = 0.7').gamma
        0.7
        """
        if not isinstance(text, str):
            raise InputError(f"the rule is {text!r}: expected TOML text, as in 'gamma = 0.7'")
        return cls.from_dict(load_toml(text))


def _set(rule: Rule, **values: object) -> None:
    """Set fields of a frozen rule while it is being made."""
    for name, found in values.items():
        object.__setattr__(rule, name, found)


def _check_choices(rule: Rule) -> None:
    """Check the options that are one of few words."""
    if not isinstance(rule.name, str) or not rule.name.strip() or not rule.name.isprintable():
        raise InputError(f"rule name is {rule.name!r}: expected a name of one line")
    for option, words in (
        ("bias", Bias),
        ("residual", Residual),
        ("embedding_d_in", EmbeddingDIn),
    ):
        found = getattr(rule, option)
        if not isinstance(found, str) or found not in get_args(words):
            raise unknown(f"rule {option}", found, get_args(words))


def _by_role(rule: Rule, option: str) -> dict[str, object]:
    """Return a by-role option with its keys checked."""
    found = getattr(rule, option)
    if not isinstance(found, Mapping):
        raise InputError(f"rule {option} is {found!r}: expected a mapping from roles")
    return {check_option_key(option, key): x for key, x in found.items()}
