"""A target of files: a config, the tensors of a checkpoint, or both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from initrate.errors import InputError
from initrate.files import shown
from initrate.frameworks._config_model import ConfigModel, config_notes, model_of_config
from initrate.frameworks._patterns import chosen, refuse_idle
from initrate.frameworks._safetensors import StoredTensor
from initrate.frameworks._stored import digest, stored_moments
from initrate.frameworks._stored_names import measure_stored
from initrate.frameworks._target import EVERY, Values, Which
from initrate.rule import Audit, Finding, Plan, Rule, WeightRecord, make_audit, plan_records


@dataclass(frozen=True, slots=True)
class FilesTarget:
    """What lies on a disk; no tensor is ever in memory as a whole."""

    path: Path
    tensors: Mapping[str, StoredTensor]
    config: Path | None

    def _model(self, which: Which = EVERY) -> ConfigModel:
        if self.config is None:
            raise InputError(
                f"{shown(self.path)} does not say what its tensors are, and a rule needs that: "
                "give the model's config by --layout CONFIG.json"
            )
        return model_of_config(self.config, include=which.include, exclude=which.exclude)

    def plan(self, rule: Rule, which: Which = EVERY) -> Plan:
        """Return what the rule does with every tensor of the model."""
        return plan_records(self._model(which).records, rule, unknown_tensors=which.unknown)

    def notes(self) -> list[str]:
        """Return which model a config stands for, where it does not say itself."""
        return [] if self.config is None else config_notes(self.config)

    def audit(self, rule: Rule | None, which: Which = EVERY, *, waive: Sequence[str] = ()) -> Audit:
        """Return what the stored tensors measure, against the rule or the config's own, or none."""
        if not self.tensors:
            raise InputError(
                f"{shown(self.path)} has no values to measure: name a folder that has the weights "
                "too, or take initrate plan"
            )
        if self.config is None and rule is None:
            return self._bare(which, waive)
        model = self._model(which)
        asked, rule = rule, rule or model.written_rule()
        found = measure_stored(model, self.tensors)
        records = [*model.records, *found.foreign]
        plan = plan_records(
            records, Rule() if rule is None else rule, unknown_tensors=which.unknown
        )
        further = [
            Finding("IR111", tuple(names), reason)
            for reason, names in (
                ("is in the config's model and not in the files", found.missing),
                ("is stored as codes or integers, which are not measured", found.unmeasured),
            )
            if rule is not None and names
        ]
        return make_audit(
            plan,
            found.moments,
            written=asked is None,
            rule=rule,
            multipliers=model.multipliers,
            further=further,
            waive=waive,
        )

    def _bare(self, which: Which, waive: Sequence[str]) -> Audit:
        """Return what the tensors measure, with nothing known of any of them."""
        refuse_idle("include", which.include, list(self.tensors))
        refuse_idle("exclude", which.exclude, list(self.tensors))
        some = {
            name: tensor
            for name, tensor in self.tensors.items()
            if tensor.measured and chosen(name, which.include, which.exclude)
        }
        records = [WeightRecord(name, tensor.shape) for name, tensor in some.items()]
        measured = {name: stored_moments(tensor)[0] for name, tensor in some.items()}
        return make_audit(plan_records(records, Rule()), measured, rule=None, waive=waive)

    def values(self) -> dict[str, Values]:
        """Return what every stored tensor holds."""
        if not self.tensors:
            raise InputError(f"{shown(self.path)} has no values: name a folder with the weights")
        return {
            name: Values(
                tensor.shape,
                tensor.dtype,
                stored_moments(tensor)[0] if tensor.measured else None,
                digest(tensor),
            )
            for name, tensor in sorted(self.tensors.items())
        }
