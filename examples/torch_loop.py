"""γ and weight decay in a plain loop of torch: plan, preflight, draw, groups, decay, train.

Runs in seconds on a CPU: `python examples/torch_loop.py`.
"""

from __future__ import annotations

import torch
from torch import nn

import initrate
from initrate.frameworks.torch import independent_decay
from initrate.rule import decay_window

STEPS, WIDTH, CLASSES = 60, 64, 10


class Block(nn.Module):
    """A residual layer."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.mlp = nn.ModuleDict(
            {"fc1": nn.Linear(WIDTH, 4 * WIDTH), "fc2": nn.Linear(4 * WIDTH, WIDTH)}
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x with what the layer adds to it."""
        return x + self.mlp["fc2"](nn.functional.gelu(self.mlp["fc1"](self.norm(x))))


def main() -> dict[str, float]:
    """Train a small model and return what came of it."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(512, WIDTH)
    labels = (x @ torch.randn(WIDTH, CLASSES)).argmax(-1)
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), Block(), Block(), nn.Linear(WIDTH, CLASSES))

    # A rule treats all dense maps alike here, so that no role needs to be known.
    audit = initrate.apply(model, gamma=0.7, seed=0)
    audit.raise_for_findings()

    flight = initrate.preflight(model, x[:64], labels=labels[:64], steps=STEPS)
    for line in (*map(str, flight.findings), *flight.warnings):
        print("warning:", line)
    print(f"first loss {flight.loss:.3f}, ln(classes) {flight.expected_loss:.3f}")
    print(f"warm-up of {flight.suggested_warmup} steps: {flight.reasoning}")

    groups = initrate.param_groups(model, weight_decay=1e-3)
    for name, (tensors, values) in groups.counts().items():
        print(f"{name}: {tensors} tensors, {values:,} values")
    optimizer = torch.optim.AdamW(groups, lr=3e-3)
    # Weight decay apart from the learning rate, in the first half of the steps only.
    decay = independent_decay(optimizer, schedule=decay_window(0, STEPS // 2))
    warm_up = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, (step + 1) / max(1, flight.suggested_warmup))
    )
    loss = torch.zeros(())
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
        warm_up.step()
    total = decay.sums()["decayed"]
    print(f"last loss {loss.item():.3f}; decayed by {total:.3g} in all")
    return {"first": flight.loss, "last": loss.item(), "decayed": total}


if __name__ == "__main__":
    main()
