"""Weights to and from Hugging Face GPT-2: the same numbers under other names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from initrate.errors import InputError
from initrate.model._config import ModelConfig
from initrate.model._tensors import tensor_specs

if TYPE_CHECKING:
    from transformers import GPT2LMHeadModel

Weights = Mapping[str, NDArray[np.floating]]

_BLOCK = {
    "ln_1": ("norm_1",),
    "attn.c_attn": ("attention.query", "attention.key", "attention.value"),
    "attn.c_proj": ("attention.output",),
    "ln_2": ("norm_2",),
    "mlp.c_fc": ("mlp.in",),
    "mlp.c_proj": ("mlp.out",),
}
"""Part of a GPT-2 block -> ours, joined along the last axis; Conv1D keeps [in, out] as we do."""


def to_gpt2(config: ModelConfig, weights: Weights) -> GPT2LMHeadModel:
    """Return a Hugging Face GPT-2, in evaluation mode, that computes what these weights compute.

    `weights` are the float32 tensors of one model under their canonical names. Shapes that GPT-2
    has no place for are refused by the name of the field.

    >>> from initrate.model import shape
    >>> to_gpt2(shape("laptop"), {})
    Traceback (most recent call last):
    initrate.errors.InputError: model activation is 'gelu': GPT-2 needs 'gelu_tanh'
    """
    _check_config(config)
    transformers = _transformers()
    sizes = _sizes(config, weights)
    _check_weights(sizes, weights)
    import torch

    # Construction draws weights that are overwritten here: the global generator stays untouched.
    with torch.random.fork_rng(devices=[]):
        model = transformers.GPT2LMHeadModel(
            transformers.GPT2Config(
                vocab_size=sizes["token_embedding.weight"][0],
                n_positions=config.max_positions,
                n_embd=config.d_model,
                n_layer=config.n_layers,
                n_head=config.n_heads,
                n_inner=config.d_ff,
                activation_function="gelu_new",
                layer_norm_epsilon=config.norm_eps,
                embd_pdrop=0.0,
                attn_pdrop=0.0,
                resid_pdrop=0.0,
                bos_token_id=None,
                eos_token_id=None,
                tie_word_embeddings=config.tied,
            )
        )
    parameters = dict(model.named_parameters())
    for theirs, ours in _names(config).items():
        joined = np.concatenate([weights[name] for name in ours], axis=-1)
        joined = joined.T if theirs == "lm_head.weight" else joined
        with torch.no_grad():
            parameters[theirs].copy_(torch.from_numpy(np.array(joined, np.float32)))
    return model.eval()


def from_gpt2(model: GPT2LMHeadModel) -> tuple[ModelConfig, dict[str, NDArray[np.float32]]]:
    """Return the shape of a Hugging Face GPT-2 and its weights under their canonical names.

    The weights are float32 copies; dropout is not part of a shape and is left behind.

    >>> from_gpt2("gpt2")
    Traceback (most recent call last):
    initrate.errors.InputError: cannot convert a str: expected a transformers GPT2LMHeadModel
    """
    # Nobody can hold such a model unless transformers was imported: no need to import it here.
    if type(model).__name__ != "GPT2LMHeadModel":
        raise InputError(
            f"cannot convert a {type(model).__name__}: expected a transformers GPT2LMHeadModel"
        )
    config = _config(model)
    # A tied model names its shared matrix once, by the embedding.
    parameters = dict(model.named_parameters())
    known = _names(config)
    strange = sorted(set(parameters) ^ set(known))
    if strange:
        raise InputError(
            f"GPT-2 tensor {strange[0]!r} is missing or unknown: expected a plain GPT2LMHeadModel "
            "without added or merged modules"
        )
    weights: dict[str, NDArray[np.float32]] = {}
    for theirs, ours in known.items():
        if parameters[theirs].is_meta:
            raise InputError(f"GPT-2 tensor {theirs!r} lies on the meta device: load it first")
        array = parameters[theirs].detach().float().cpu().numpy()
        array = array.T if theirs == "lm_head.weight" else array
        for name, part in zip(ours, np.split(array, len(ours), axis=-1), strict=True):
            weights[name] = np.array(part, order="C")
    return config, weights


def _names(config: ModelConfig) -> dict[str, tuple[str, ...]]:
    """Return GPT-2 parameter -> the canonical tensors that it joins."""
    names: dict[str, tuple[str, ...]] = {
        "transformer.wte.weight": ("token_embedding.weight",),
        "transformer.wpe.weight": ("position_embedding.weight",),
    }
    for layer in range(config.n_layers):
        for theirs, ours in _BLOCK.items():
            for kind in ("weight", "bias"):
                joined = tuple(f"blocks.{layer}.{part}.{kind}" for part in ours)
                names[f"transformer.h.{layer}.{theirs}.{kind}"] = joined
    names["transformer.ln_f.weight"] = ("final_norm.weight",)
    names["transformer.ln_f.bias"] = ("final_norm.bias",)
    if not config.tied:
        names["lm_head.weight"] = ("unembedding.weight",)
    return names


def _sizes(config: ModelConfig, weights: Weights) -> dict[str, tuple[int, ...]]:
    """Return canonical name -> shape; the vocabulary is read off the token embedding."""
    embedding = weights.get("token_embedding.weight")
    if embedding is None:
        raise InputError("tensor 'token_embedding.weight' is missing: expected one model's weights")
    return {spec.name: spec.shape for spec in tensor_specs(config, len(embedding))}


def _check_weights(sizes: Mapping[str, tuple[int, ...]], weights: Weights) -> None:
    for name in sorted(set(sizes) ^ set(weights)):
        state = "missing" if name in sizes else "not one of this shape's"
        raise InputError(f"tensor {name!r} is {state}: expected one model's weights")
    for name, size in sizes.items():
        if weights[name].shape != size:
            raise InputError(
                f"tensor {name!r} has shape {list(weights[name].shape)}: expected {list(size)}"
            )


def _check_config(config: ModelConfig) -> None:
    """Refuse, by the name of the field, what GPT-2 cannot be."""
    needed = {
        "norm_position": "pre",
        "norm": "layernorm",
        "activation": "gelu_tanh",
        "positions": "learned",
        "biases": "blocks",
    }
    for field, value in needed.items():
        found = getattr(config, field)
        if found != value:
            raise InputError(f"model {field} is {found!r}: GPT-2 needs {value!r}")
    if config.d_model % config.n_heads:
        raise InputError(
            f"model d_model is {config.d_model}: GPT-2 needs a multiple of n_heads, "
            f"{config.n_heads}"
        )
    for field in ("d_k", "d_v"):
        found, each = getattr(config, field), config.d_model // config.n_heads
        if found != each:
            raise InputError(f"model {field} is {found}: GPT-2 needs d_model / n_heads, {each}")


def _config(model: GPT2LMHeadModel) -> ModelConfig:
    """Return the shape of a GPT-2, or refuse the switch that a `ModelConfig` cannot say."""
    theirs: Any = model.config
    allowed = {
        "activation_function": ("gelu_new", "gelu_pytorch_tanh"),
        "scale_attn_weights": (True,),
        "scale_attn_by_inverse_layer_idx": (False,),
        "add_cross_attention": (False,),
    }
    for field, values in allowed.items():
        found = getattr(theirs, field)
        if found not in values:
            raise InputError(f"GPT-2 {field} is {found!r}: expected {values[0]!r}")
    d_head = theirs.n_embd // theirs.n_head
    return ModelConfig(
        n_layers=theirs.n_layer,
        d_model=theirs.n_embd,
        n_heads=theirs.n_head,
        d_k=d_head,
        d_v=d_head,
        d_ff=4 * theirs.n_embd if theirs.n_inner is None else theirs.n_inner,
        norm_eps=theirs.layer_norm_epsilon,
        activation="gelu_tanh",
        max_positions=theirs.n_positions,
        # The storage decides, whatever the configuration says.
        tied=model.lm_head.weight is model.transformer.wte.weight,
        biases="blocks",
    )


def _transformers() -> Any:
    try:
        import transformers
    except ImportError as error:
        raise InputError(
            "transformers is not installed: pip install 'initrate[hf]' to convert to GPT-2"
        ) from error
    return transformers
