"""The weights of the decoder: their names, shapes and roles, and their values before training."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from initrate.errors import InputError
from initrate.model._config import ModelConfig
from initrate.rule import Rule, TensorSpec, draw_tensor, named_rule


@functools.cache
def tensor_specs(config: ModelConfig, vocabulary: int) -> tuple[TensorSpec, ...]:
    """Return a spec for every tensor of one model, in the order of the forward pass.

    Matrices are stored as [d_in, d_out]. A tied unembedding has no tensor of its own.

    >>> [s.name for s in tensor_specs(ModelConfig(n_layers=1), 128)][:3]
    ['token_embedding.weight', 'position_embedding.weight', 'blocks.0.norm_1.weight']
    """
    d_model = config.d_model
    specs: list[TensorSpec] = []

    def add(name: str, shape: tuple[int, ...], role: str, d_in: int, of: str | None = None) -> None:
        specs.append(TensorSpec(name, shape, role, d_in, d_model, vocabulary, of))

    def add_linear(name: str, d_in: int, d_out: int, role: str, *, biased: bool) -> None:
        add(f"{name}.weight", (d_in, d_out), role, d_in)
        if biased:
            add(f"{name}.bias", (d_out,), "bias", d_in, role)

    def add_norm(name: str) -> None:
        add(f"{name}.weight", (d_model,), "norm", d_model)
        if config.norm == "layernorm":
            add(f"{name}.bias", (d_model,), "norm", d_model)

    add("token_embedding.weight", (vocabulary, d_model), "token_embedding", d_model)
    if config.positions == "learned":
        shape = (config.max_positions, d_model)
        add("position_embedding.weight", shape, "position", d_model)
    heads_k, heads_v = config.n_heads * config.d_k, config.n_heads * config.d_v
    biased = config.biases in ("blocks", "all")
    for layer in range(config.n_layers):
        block = f"blocks.{layer}"
        add_norm(f"{block}.norm_1")
        add_linear(f"{block}.attention.query", d_model, heads_k, "query", biased=biased)
        add_linear(f"{block}.attention.key", d_model, heads_k, "key", biased=biased)
        add_linear(f"{block}.attention.value", d_model, heads_v, "value", biased=biased)
        output = f"{block}.attention.output"
        add_linear(output, heads_v, d_model, "attention_output", biased=biased)
        add_norm(f"{block}.norm_2")
        add_linear(f"{block}.mlp.in", d_model, config.d_ff, "mlp_in", biased=biased)
        if config.activation == "swiglu":
            add_linear(f"{block}.mlp.gate", d_model, config.d_ff, "mlp_gate", biased=biased)
        add_linear(f"{block}.mlp.out", config.d_ff, d_model, "mlp_out", biased=biased)
    if config.norm_position == "pre":
        add_norm("final_norm")
    biased = config.biases in ("unembedding", "all")
    if not config.tied:
        add_linear("unembedding", d_model, vocabulary, "unembedding", biased=biased)
    elif biased:
        add("unembedding.bias", (vocabulary,), "bias", d_model, "unembedding")
    return tuple(specs)


def n_parameters(config: ModelConfig, vocabulary: int) -> int:
    """Return the number of parameters of one model.

    >>> n_parameters(ModelConfig(), 128)
    67584
    """
    return sum(spec.size for spec in tensor_specs(config, vocabulary))


def initialize(
    config: ModelConfig, vocabulary: int, rules: Sequence[Rule], seeds: Sequence[int]
) -> dict[str, NDArray[np.float32]]:
    """Return the initial weights, name -> [n_models, *shape], one rule and seed a model.

    Norms start at gain 1 and bias 0. What a rule keeps has the values of a new torch layer.

    >>> initialize(ModelConfig(), 128, [Rule(gamma=0.8)], [0])["blocks.0.mlp.in.weight"].shape
    (1, 64, 128)
    """
    if len(rules) != len(seeds):
        raise InputError(f"{len(rules)} rules and {len(seeds)} seeds: expected one each a model")
    weights: dict[str, NDArray[np.float32]] = {}
    for spec in tensor_specs(config, vocabulary):
        drawn = [_draw(config, rule, spec, seed) for rule, seed in zip(rules, seeds, strict=True)]
        weights[spec.name] = np.stack(drawn)
    return weights


def _draw(config: ModelConfig, rule: Rule, spec: TensorSpec, seed: int) -> NDArray[np.float32]:
    values = draw_tensor(rule, spec, seed=seed, n_layers=config.n_layers)
    if values is None and spec.role == "norm":
        gain = 1.0 if spec.name.endswith(".weight") else 0.0
        return np.full(spec.shape, gain, dtype=np.float32)
    if values is None:
        values = draw_tensor(named_rule("torch-default"), spec, seed=seed, n_layers=config.n_layers)
    if values is None:
        raise InputError(f"{spec.name!r} has no initial values: give its role {spec.role!r} a draw")
    return values
