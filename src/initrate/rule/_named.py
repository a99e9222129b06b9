"""The named rules: what papers and libraries do, each with its source."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from initrate.errors import InputError, unknown
from initrate.rule._draws import Draw, Std, Uniform
from initrate.rule._roles import EMBEDDING_ROLES, WEIGHT_ROLES
from initrate.rule._rule import Rule


@dataclass(frozen=True, slots=True)
class NamedRule:
    """A rule of the literature, with one line that says what it does and where it is from."""

    rule: Rule
    description: str
    source: str


def _draws(*, linear: Draw, embedding: Draw) -> dict[str, Draw]:
    """Return a draw for every weight, so that gamma has no part in the rule."""
    return {role: embedding if role in EMBEDDING_ROLES else linear for role in WEIGHT_ROLES}


RULES: dict[str, NamedRule] = {
    "formula": NamedRule(
        Rule(),
        "std = d_in^-gamma for every weight, d_in counted truly; biases zero",
        "arXiv 2405.05409, section 1",
    ),
    "paper-2405.05409": NamedRule(
        Rule(bias="torch", name="paper-2405.05409"),
        "the formula; the one bias of the model, the unembedding's, keeps torch's default",
        "arXiv 2405.05409, appendix A",
    ),
    "paper-code-2501.08537": NamedRule(
        Rule(
            bias="torch",
            residual="sqrt_2L",
            d_in_by_role={"attention_output": "d_model", "mlp_out": "d_model"},
            name="paper-code-2501.08537",
        ),
        "d_model^-gamma for every weight; attention output and second MLP map divided by "
        "sqrt(2 n_layers); biases keep torch's default",
        "the authors' published code of arXiv 2501.08537",
    ),
    "gpt2": NamedRule(
        Rule(
            residual="sqrt_2L",
            draws=_draws(linear=Std(0.02), embedding=Std(0.02)),
            name="gpt2",
        ),
        "std 0.02 everywhere; attention output and second MLP map divided by sqrt(2 n_layers); "
        "biases zero; no gamma",
        "GPT-2 (2019), as in Hugging Face transformers",
    ),
    "torch-default": NamedRule(
        Rule(
            bias="torch",
            draws=_draws(linear=Uniform(gamma=0.5), embedding=Std(1.0)),
            name="torch-default",
        ),
        "linear maps and their biases uniform within 1/sqrt(d_in); embeddings of std 1; no gamma",
        "torch.nn.Linear and torch.nn.Embedding",
    ),
}


def named_rule(name: str, *, gamma: float | None = None, **changes: object) -> Rule:
    """Return the rule of this name, with its gamma and any other option changed.

    >>> named_rule("paper-2405.05409", gamma=0.8).std("query", d_in=400) == 400**-0.8
    True
    """
    if not isinstance(name, str) or name not in RULES:
        raise unknown("rule", name, RULES)
    names = [f.name for f in fields(Rule) if f.name not in ("name", "gamma")]
    for key in changes:
        if key not in names:
            raise unknown("rule option", key, names)
    rule = RULES[name].rule
    if gamma is not None and rule.gamma is None and "draws" not in changes:
        raise InputError(
            f"rule {name!r} is given gamma {gamma!r}: it has no gamma; leave it out, "
            "or take the rule 'formula'"
        )
    return replace(
        rule,
        gamma=rule.gamma if gamma is None else gamma,
        **changes,  # pyright: ignore[reportArgumentType]
    )


def rule_title(rule: Rule) -> str:
    """Return the name of the rule and which options were changed, so that no result hides them.

    >>> rule_title(named_rule("gpt2", residual="none"))
    'gpt2 (changed: residual)'
    """
    if rule.name not in RULES:
        return rule.name
    base = RULES[rule.name].rule
    free = ("gamma", "gamma_by_role", "name")
    options = [f.name for f in fields(Rule) if f.name not in free]
    changed = [option for option in options if getattr(rule, option) != getattr(base, option)]
    return f"{rule.name} (changed: {', '.join(changed)})" if changed else rule.name
