"""γ in the Trainer of Hugging Face: a callback, decay by role, a checkpoint that knows its rule.

Runs in seconds on a CPU: `python examples/huggingface_trainer.py`.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, GPT2Config, Trainer, TrainingArguments

import initrate
from initrate.frameworks.huggingface import InitrateCallback, rule_of

VOCABULARY, LENGTH, STEPS = 32, 16, 5


class Counting(torch.utils.data.Dataset[dict[str, torch.Tensor]]):
    """Sequences that count up in steps of one size."""

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        ids = (torch.arange(LENGTH) * (index % 7 + 1) + index) % VOCABULARY
        return {"input_ids": ids, "labels": ids}


def main() -> dict[str, object]:
    """Train a small GPT-2 and return what its checkpoint says of its start."""
    torch.manual_seed(0)
    config = GPT2Config(
        n_embd=64,
        n_layer=2,
        n_head=2,
        vocab_size=VOCABULARY,
        n_positions=LENGTH,
        bos_token_id=0,
        eos_token_id=0,
    )
    model = AutoModelForCausalLM.from_config(config)

    groups = initrate.param_groups(model, weight_decay=0.1, by_role={"mlp": 0.2})
    optimizer = torch.optim.AdamW(groups, lr=1e-3)
    callback = InitrateCallback(gamma=0.8, seed=0, log_every=2, decay_schedule=((4, 0.5),))

    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(
            model=model,
            args=TrainingArguments(
                output_dir=folder,
                max_steps=STEPS,
                per_device_train_batch_size=8,
                logging_steps=1,
                save_strategy="no",
                report_to=[],
                use_cpu=True,
                dataloader_pin_memory=False,
                disable_tqdm=True,
            ),
            train_dataset=Counting(),
            callbacks=[callback],
            optimizers=(optimizer, None),
        )
        callback.watch(trainer)
        trainer.train()
        trainer.save_model()
        card = (Path(folder) / "README.md").read_text(encoding="utf-8")
        again = AutoModelForCausalLM.from_pretrained(folder)
    print(card)
    print("the checkpoint was started with:", rule_of(again.config))
    return {"rule": rule_of(again.config), "card": card, "log": trainer.state.log_history}


if __name__ == "__main__":
    main()
