"""How many operations a training step takes: the plain way, and with what the engine leaves out."""

from __future__ import annotations

from dataclasses import dataclass

from initrate.bench._sizes import Size


@dataclass(frozen=True, slots=True)
class Operations:
    """Additions and multiplications of one training step of one model."""

    plain: float
    remaining: float
    """Those that are left when the exact savings of the engine are taken."""

    @property
    def ceiling(self) -> float:
        """Return how many times faster than the plain way these savings can make a step."""
        return self.plain / self.remaining


def operations(size: Size) -> Operations:
    """Return the operations of one training step of one model of this size.

    Matrix products alone, two operations for each multiply-add; the backward pass takes twice as
    many as the forward pass. The plain way is that of a module: every map and all of attention at
    every position (masked scores are computed as well), logits of every position. What remains is
    counted as `initrate.model.logits` computes it:

    - Only the last position is asked for (loss "last"): the last layer and the unembedding are
      needed for it alone. Its keys and values are never formed: the query is moved through W_K
      onto the hidden states, and their mean through W_V.
    - The first layer sees vocabulary x length distinct inputs at most. Where a batch has twice as
      many sequences as the vocabulary has entries, or more, queries, keys and values are computed
      once for each.

    >>> from initrate.bench import SIZES
    >>> round(operations(SIZES["laptop"]).plain / 1e9, 2)
    0.81
    """
    model, length, vocabulary = size.model, size.length, size.vocabulary
    keys, values = model.n_heads * model.d_k, model.n_heads * model.d_v
    projections = model.d_model * (2 * keys + values)
    products = length * (keys + values)
    output = values * model.d_model
    mlp = (3 if model.activation == "swiglu" else 2) * model.d_model * model.d_ff
    unembedding = model.d_model * vocabulary
    layer = projections + products + output + mlp  # At one position.

    last = size.loss == "last"
    plain = length * (model.n_layers * layer + unembedding)
    remaining = plain
    if last:
        # The query, through W_K; scores and mean over hidden states; W_V.
        attended = model.d_model * (2 * keys + 2 * length * model.n_heads + values) + output
        if model.positions == "rotary":  # A turned key depends on its position: it is formed.
            attended = length * (projections + products + output)
        remaining = length * (model.n_layers - 1) * layer + attended + mlp + unembedding
    if (model.n_layers > 1 or not last) and 2 * vocabulary <= size.batch:
        remaining += (vocabulary / size.batch - 1) * length * projections
    return Operations(*(3.0 * 2.0 * size.batch * count for count in (plain, remaining)))
