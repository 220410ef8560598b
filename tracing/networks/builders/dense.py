"""Networks of linear layers."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - its usual name
from torch import Tensor, nn

from ..workload import NetworkWorkload

CLASSES = 10


def classified(model: nn.Module, *inputs: Tensor) -> Tensor:
    """The cross entropy of a classifier; its last input holds the classes."""
    *given, classes = inputs
    return F.cross_entropy(model(*given), classes)


def forward_without_classes(model: nn.Module, *inputs: Tensor) -> Tensor:
    """A forward pass of a classifier, without the classes."""
    output: Tensor = model(*inputs[:-1])
    return output


def classifier(model: nn.Module, *inputs: Tensor) -> NetworkWorkload:
    """A workload of a classifier with its inputs; classes are drawn for the first dimension of the first one."""
    classes = torch.randint(0, CLASSES, (len(inputs[0]),))
    return NetworkWorkload(model, (*inputs, classes), infer=forward_without_classes, loss=classified)


def softshrink() -> NetworkWorkload:
    """A network with an operator that one release lacks."""
    return classifier(nn.Sequential(nn.Linear(16, 32), nn.Softshrink(), nn.Linear(32, CLASSES)), torch.randn(8, 16))


def mlp() -> NetworkWorkload:
    """A perceptron with batch normalisation and dropout."""
    layers = nn.Sequential(
        nn.Flatten(),
        *(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.GELU(), nn.Dropout(0.1)),
        *(nn.Linear(64, 64), nn.LayerNorm(64), nn.SiLU()),
        nn.Linear(64, CLASSES),
    )
    return classifier(layers, torch.randn(8, 8, 8))


class Experts(nn.Module):
    """Sends each token to two of four experts, and sums their answers by the router's weights."""

    def __init__(self, width: int, experts: int = 4, chosen: int = 2) -> None:
        super().__init__()
        self.router = nn.Linear(width, experts)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)) for _ in range(experts)
        )
        self.chosen = chosen

    def forward(self, tokens: Tensor) -> Tensor:
        """The experts' answers for tokens of (number, width)."""
        weights, chosen = self.router(tokens).softmax(-1).topk(self.chosen, dim=-1)
        weights = weights / weights.sum(-1, keepdim=True)
        answer = torch.zeros_like(tokens)
        for number, expert in enumerate(self.experts):
            rows, places = torch.where(chosen == number)
            weighted = expert(tokens[rows]) * weights[rows, places].unsqueeze(-1)
            answer = answer.index_add(0, rows, weighted.to(answer.dtype))
        return answer


def mixture_of_experts() -> NetworkWorkload:
    """A classifier with a layer of experts."""
    layers = nn.Sequential(nn.Linear(16, 32), Experts(32), nn.LayerNorm(32), nn.Linear(32, CLASSES))
    return classifier(layers, torch.randn(24, 16))
