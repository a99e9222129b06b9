"""From a model to the framework that it is of, by its class and by what is imported already.

No framework is imported to find this out: a model of one that is not imported cannot be there.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from initrate.errors import InputError
from initrate.errors import unknown as unknown_word
from initrate.frameworks._reading import reading
from initrate.rule import Audit, Plan, Rule, Unknown

Framework = Literal["torch", "keras", "jax"]


def framework_of(model: object) -> Framework:
    """Return the framework that a model is of.

    A model of Keras on torch is a module of torch too, and goes by Keras.
    """
    if _is(model, "keras", "Layer"):
        return "keras"
    if _is(model, "torch.nn", "Module"):
        return "torch"
    if "jax" in sys.modules and _is_tree(model):
        return "jax"
    raise InputError(
        f"model is {_called(model)}: expected a torch.nn.Module, a Keras model, or a tree of JAX "
        "arrays such as those of Flax and Equinox"
    )


_INSTEAD = {
    ("jax", "param_groups"): "initrate.jax.decay_mask says to optax what decays",
    ("keras", "param_groups"): "initrate.keras.exclude_from_decay says what does not",
}
"""What does the work of a function that a framework has no use for."""


def _is(model: object, module: str, name: str) -> bool:
    found = getattr(sys.modules.get(module), name, None)
    return isinstance(found, type) and isinstance(model, found)


def _is_tree(model: object) -> bool:
    """Return whether some leaf of a tree is an array of JAX or NumPy, or a shape of one."""
    jax = sys.modules["jax"]
    if isinstance(model, str | bytes) or model is None:
        return False
    # Modules of Flax hide their arrays in variables that are leaves of their own.
    if _is(model, "flax.nnx", "Module") or _is(model, "flax.nnx", "State"):
        return True
    with reading(model):
        leaves = jax.tree_util.tree_leaves(model)
    kinds = (jax.Array, jax.ShapeDtypeStruct, np.ndarray)
    return any(isinstance(leaf, kinds) for leaf in leaves)


def _called(model: object) -> str:
    if isinstance(model, type):
        return f"the class {model.__name__}, not a model made of it"
    if isinstance(model, str):
        return f"the text {model[:60]!r}"
    return f"{type(model).__module__}.{type(model).__qualname__}".removeprefix("builtins.")


def _adapter(model: object, function: str) -> Any:
    framework = framework_of(model)
    module = importlib.import_module(f"initrate.frameworks.{framework}")
    found = getattr(module, function, None)
    if found is None:
        there = _INSTEAD.get((framework, function), "it is for models of torch alone")
        raise InputError(f"{function} is not there for models of {framework}: {there}")
    return found


def _rule(
    gamma: float | None, rule: Rule | str | None, by_role: Mapping[str, float] | None
) -> dict[str, Any]:
    """Return what says the rule, as far as it is given."""
    given = {"gamma": gamma, "rule": rule, "gamma_by_role": by_role}
    return {name: found for name, found in given.items() if found is not None}


def _known(function: Any, options: Mapping[str, object]) -> Mapping[str, object]:
    """Return the options; InputError for one that the framework's function has not."""
    known = [name for name in inspect.signature(function).parameters if name != "model"]
    for name in options:
        if name not in known:
            raise unknown_word(f"option of {function.__name__}", name, known)
    return options


def plan(
    model: object,
    *,
    gamma: float | None = None,
    rule: Rule | str | None = None,
    gamma_by_role: Mapping[str, float] | None = None,
    unknown: Unknown = "refuse",
    layouts: Sequence[Any] = (),
    example: object = None,
    **options: Any,
) -> Plan:
    """Return what a rule does with every tensor of a model; the model is not changed.

    The model is a torch.nn.Module, a Keras model, or a tree of JAX arrays. Give `gamma`, with
    `gamma_by_role={"qk": 0.5}` if roles differ, or a `rule` or its name. A tensor whose role or
    d_in is not known is refused by name, or with `unknown="keep"` kept; `layouts` and `example` say
    what such a tensor is. Further options, such as `include`, go to the framework's own plan.
    """
    _with_example(model, example)
    given = _rule(gamma, rule, gamma_by_role) | _changed(layouts=layouts, example=example)
    function = _adapter(model, "plan")
    return function(model, unknown=unknown, **given, **_known(function, options))


def apply(
    model: object,
    *,
    gamma: float | None = None,
    rule: Rule | str | None = None,
    gamma_by_role: Mapping[str, float] | None = None,
    seed: int = 0,
    unknown: Unknown = "refuse",
    layouts: Sequence[Any] = (),
    example: object = None,
    **options: Any,
) -> Any:
    """Draw the weights of a model by a rule, and return the audit of what was then measured.

    Models of torch and Keras, and modules of Flax NNX, are changed in place. Other trees of JAX
    are values: of those the new tree and the audit are returned, as a pair. Every value depends on
    (seed, name, place) alone. Further options, such as `mode` and `force`, go to the framework's
    own apply.
    """
    _with_example(model, example)
    given = _rule(gamma, rule, gamma_by_role) | _changed(layouts=layouts, example=example)
    function = _adapter(model, "apply")
    return function(model, seed=seed, unknown=unknown, **given, **_known(function, options))


def audit(
    model: object,
    *,
    gamma: float | None = None,
    rule: Rule | str | None = None,
    gamma_by_role: Mapping[str, float] | None = None,
    layouts: Sequence[Any] = (),
    waive: Iterable[str] = (),
    **options: Any,
) -> Audit:
    """Return the measured std and the implied rate of every tensor, and what is wrong with them.

    Without gamma and rule it is the rule that the model's config has written down, or none. Further
    options, such as `optimizer` and `batch` of torch, go to the framework's own audit.
    """
    given = _rule(gamma, rule, gamma_by_role) | _changed(layouts=layouts)
    function = _adapter(model, "audit")
    return function(model, waive=_codes(waive), **given, **_known(function, options))


def assert_init(
    model: object,
    rule: Rule | str | None = None,
    *,
    gamma: float | None = None,
    gamma_by_role: Mapping[str, float] | None = None,
    waive: Iterable[str] = (),
    **options: Any,
) -> None:
    """Raise a FindingError, an AssertionError, where a model is not as a rule has it.

    For tests of your own. The rule is a Rule, the name of one with its gamma, or a gamma alone; the
    error tells all findings in one line.
    """
    if rule is None and gamma is None and gamma_by_role is None:
        raise InputError("neither gamma nor rule is given: give one, as in gamma=0.8")
    rules = {"gamma": gamma, "rule": rule, "gamma_by_role": gamma_by_role}
    audit(model, **rules, waive=waive, **options).raise_for_findings()


def param_groups(model: object, *, weight_decay: float, **options: Any) -> Any:
    """Return the groups of a torch optimizer: every trainable parameter in exactly one of them.

    For JAX and Keras see `initrate.jax.decay_mask` and `initrate.keras.exclude_from_decay`.
    """
    function = _adapter(model, "param_groups")
    return function(model, weight_decay=weight_decay, **_known(function, options))


def preflight(model: object, batch: object, **options: Any) -> Any:
    """Return what one forward and one backward pass tell of a start."""
    function = _adapter(model, "preflight")
    return function(model, batch, **_known(function, options))


def _codes(waive: Iterable[str]) -> tuple[str, ...]:
    if isinstance(waive, str):
        return (waive,)
    if not isinstance(waive, Iterable):
        raise InputError(f"waive is {waive!r}: expected codes, such as ['IR107']")
    return tuple(waive)


def _with_example(model: object, example: object) -> None:
    """Refuse an example where a framework has no use for it."""
    if example is not None and framework_of(model) == "keras":
        raise InputError("example is given for a model of Keras: say what a tensor is by layouts")


def _changed(*, layouts: Sequence[Any], example: object = None) -> dict[str, Any]:
    """Return the options that were given, so that an adapter without one of them can be asked."""
    if not isinstance(layouts, list | tuple):
        raise InputError(f"layouts is {layouts!r}: expected a list of Layout(...)")
    found: dict[str, Any] = {"layouts": layouts} if layouts else {}
    return found if example is None else {**found, "example": example}


def arrays_of(model: object) -> Iterator[tuple[str, np.ndarray, str]]:
    """Yield the name, the values and the type of every tensor of a model, tied ones once."""
    framework = framework_of(model)
    if framework == "torch":
        yield from _torch_arrays(model)
    elif framework == "keras":
        for weight in getattr(model, "weights", ()):
            array = sys.modules["keras"].ops.convert_to_numpy(weight)
            yield weight.path, array, str(array.dtype)
    else:
        tree_util = sys.modules["jax"].tree_util
        for path, leaf in tree_util.tree_flatten_with_path(model)[0]:
            if hasattr(leaf, "dtype") and hasattr(leaf, "shape"):
                array = np.asarray(leaf)
                yield tree_util.keystr(path), array, str(array.dtype)


def _torch_arrays(model: Any) -> Iterator[tuple[str, np.ndarray, str]]:
    import torch

    for name, parameter in model.named_parameters():
        if parameter.is_meta:
            raise InputError(f"{name!r} is on the meta device and has no values")
        tensor, dtype = parameter.detach().cpu().contiguous(), str(parameter.dtype)
        if tensor.dtype is torch.bfloat16:
            tensor = tensor.view(torch.int16)
        elif tensor.element_size() == 1 and tensor.is_floating_point():
            tensor = tensor.view(torch.uint8)
        yield name, tensor.numpy(), dtype.removeprefix("torch.")
