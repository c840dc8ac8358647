"""Which matrix products a model needs: its weights grouped by (op, type, M, K, experts)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .errors import BadInput
from .gguf_file import printable

if TYPE_CHECKING:
    from .gguf_file import Model, Tensor

MUL_MAT = "MUL_MAT"
MUL_MAT_ID = "MUL_MAT_ID"

# Tables and filters: read by rows, added or convolved, never multiplied as a matrix.
_NOT_MULTIPLIED = re.compile(
    r"^(token_types|position_embd|pos_embd|per_layer_token_embd|rope_freqs|rope_factors_\w+)\."
    r"|(^|[._])conv\w*\.|conv1d|_norm|_bias\b|\.ssm_(a|d)\b|attn_rel_b|\.time_mix_(lerp|first|decay|ln|lora_)\w*|shortconv\.conv|_scale\b"
)
_EXPERTS = re.compile(r"_exps\.weight$|\.ffn_(gate|up|down)_exps\.")


@dataclass(frozen=True)
class Product:
    """One distinct product of the model and the tensors that take part in it (in file order; the first stands for all)."""

    op: str
    type_name: str | None
    type_number: int
    m: int
    k: int
    experts: int  # 0 for MUL_MAT
    tensors: tuple[Tensor, ...]

    @property
    def label(self) -> str:
        return self.type_name or f"unknown ({self.type_number})"


def _op(tensor: Tensor, tied: bool) -> str | None:
    name = tensor.name
    if not name.endswith(".weight") or tensor.ne[1] == 1 or _NOT_MULTIPLIED.search(name):
        return None
    if name == "token_embd.weight":
        return MUL_MAT if tied else None
    if _EXPERTS.search(name):
        return MUL_MAT_ID
    return MUL_MAT


def check_experts(model: Model) -> None:
    """BadInput where a mixture of experts says to use none, or more of them than there are."""
    used_key, count_key = (f"{model.architecture}.{name}" for name in ("expert_used_count", "expert_count"))
    used, count = model.integer(used_key), model.integer(count_key)
    counts = [product.experts for product in products(model) if product.op == MUL_MAT_ID]
    if count is not None and count < 0:
        raise BadInput(f"{printable(model.path)}: {count_key} is {count}")
    if count:
        counts.append(count)
    if used is None or (not counts and used == 0):
        return
    most = min(counts, default=0)
    if not 0 < used <= most:
        raise BadInput(f"{printable(model.path)}: {used_key} is {used}, but the model has {most} experts")


def products(model: Model) -> list[Product]:
    """Every distinct product of the model, in the order its first tensor comes. token_embd counts where it also serves as output."""
    tied = "output.weight" not in model.by_name
    groups: dict[tuple[str, int, int, int, int], list[Tensor]] = {}
    for tensor in model.tensors:
        op = _op(tensor, tied)
        if op is not None:
            experts = tensor.ne[2] if op == MUL_MAT_ID else 0
            groups.setdefault((op, tensor.type_number, tensor.ne[1], tensor.ne[0], experts), []).append(tensor)
    return [Product(op, found[0].type_name, kind, m, k, experts, tuple(found)) for (op, kind, m, k, experts), found in groups.items()]
