"""Other networks whose operators people report on mps."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - its usual name
from torch import Tensor, nn

from ..workload import NetworkWorkload


class CountAutoencoder(nn.Module):
    """Counts of genes, as in scvi-tools: a variational autoencoder whose counts follow negative binomials."""

    def __init__(self, genes: int = 30, hidden: int = 16, latent: int = 4) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(genes, hidden), nn.BatchNorm1d(hidden), nn.ReLU())
        self.mean, self.log_variance = nn.Linear(hidden, latent), nn.Linear(hidden, latent)
        self.decoder = nn.Sequential(nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, genes))
        self.log_dispersion = nn.Parameter(torch.zeros(genes))

    def forward(self, counts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The rates of the counts, and the mean and log variance of the latent variables."""
        hidden = self.encoder(torch.log1p(counts))
        mean, log_variance = self.mean(hidden), self.log_variance(hidden).clamp(-8.0, 8.0)
        latent = mean + torch.randn_like(mean) * torch.exp(log_variance / 2)
        rates = torch.softmax(self.decoder(latent).float(), -1) * counts.sum(-1, keepdim=True)
        return rates, mean.float(), log_variance.float()


def count_autoencoder() -> NetworkWorkload:
    """Twelve cells; inference draws counts from the model."""
    return NetworkWorkload(
        CountAutoencoder(), (torch.randint(0, 9, (12, 30)).float(),), _sampled_counts, _negative_elbo
    )


def _sampled_counts(model: CountAutoencoder, counts: Tensor) -> Tensor:
    rates, _, _ = model(counts)
    dispersion = model.log_dispersion.exp()
    return torch.poisson(torch.distributions.Gamma(dispersion, dispersion / (rates + 1e-6)).sample())


def _negative_elbo(model: CountAutoencoder, counts: Tensor) -> Tensor:
    """The negative evidence lower bound."""
    rates, mean, log_variance = model(counts)
    r = model.log_dispersion.exp()
    total = torch.log(r + rates + 1e-8)
    likelihood = torch.lgamma(counts + r) - torch.lgamma(r) - torch.lgamma(counts + 1)
    likelihood = likelihood + r * (r.log() - total) + counts * (torch.log(rates + 1e-8) - total)
    divergence = (mean.square() + log_variance.exp() - log_variance - 1).sum(-1) / 2
    return (divergence - likelihood.sum(-1)).mean()


class NestedTextEncoder(nn.Module):
    """Sentences of different lengths, back to back in a nested tensor of jagged layout."""

    def __init__(self, words: int = 50, width: int = 16) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.project = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.layer = nn.TransformerEncoderLayer(width, 2, 32, dropout=0.0, batch_first=True)
        self.head = nn.Linear(width, 3)

    def forward(self, words: Tensor, borders: Tensor) -> Tensor:
        """Logits of the sentences between neighbours of `borders`."""
        nested = torch.nested.nested_tensor_from_jagged(self.project(self.words(words)), borders)
        padded = nested.to_padded_tensor(0.0, (len(borders) - 1, 8, 16))
        lengths = borders.diff()
        padding = torch.arange(8, device=words.device) >= lengths[:, None]
        encoded = self.layer(padded, src_key_padding_mask=padding).masked_fill(padding[..., None], 0.0)
        answers: Tensor = self.head(encoded.sum(1) / lengths[:, None])
        return answers


def nested_text_encoder() -> NetworkWorkload:
    """Three sentences."""
    return NetworkWorkload(NestedTextEncoder(), (torch.randint(0, 50, (15,)), torch.tensor([0, 4, 12, 15])))


class SparseGraphNetwork(nn.Module):
    """A graph convolution whose adjacency is a sparse matrix: COO, because torch makes no CSR tensors on mps."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(width, 16), nn.Linear(16, 3)

    def forward(self, nodes: Tensor, edges: Tensor) -> Tensor:
        """Logits of the nodes for edges of (2, number)."""
        # Sparse products have no half precision; torch's own autocast does not know them.
        with torch.autocast(nodes.device.type, enabled=False):
            return self._convolved(nodes, edges)

    def _convolved(self, nodes: Tensor, edges: Tensor) -> Tensor:
        count, weights = len(nodes), torch.ones(edges.shape[1], device=nodes.device)
        adjacency = torch.sparse_coo_tensor(edges, weights, (count, count), check_invariants=False).coalesce()
        degrees = torch.sparse.mm(adjacency, torch.ones(count, 1, device=nodes.device)).clamp(min=1.0)
        hidden = torch.relu(torch.sparse.mm(adjacency, self.first(nodes)) / degrees)
        return torch.sparse.mm(adjacency, self.second(hidden)) / degrees


def sparse_graph_network() -> NetworkWorkload:
    """A graph of ten nodes."""
    return NetworkWorkload(SparseGraphNetwork(), (torch.randn(10, 8), torch.randint(0, 10, (2, 30))))


class Recommender(nn.Module):
    """Clicks from bags of categories and numbers, as DLRM does it."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(20, width, mode=mode) for mode in ("sum", "mean"))
        self.numbers = nn.Sequential(nn.Linear(5, width), nn.ReLU())
        self.click = nn.Linear(width + 3, 1)

    def forward(self, numbers: Tensor, categories: Tensor, borders: Tensor) -> Tensor:
        """Logits; the categories of an item begin at its border."""
        dense = self.numbers(numbers)
        parts = torch.stack([dense, *(bag(categories, borders).to(dense) for bag in self.bags)], 1)
        products = parts @ parts.mT
        first, second = torch.triu_indices(3, 3, offset=1, device=numbers.device)
        answers: Tensor = self.click(torch.cat([dense, products[:, first, second]], 1))
        return answers


def recommender() -> NetworkWorkload:
    """Six items with three categories each."""
    categories, borders = torch.randint(0, 20, (18,)), torch.arange(0, 18, 3)
    return NetworkWorkload(
        Recommender(),
        (torch.randn(6, 5), categories, borders, torch.rand(6).round()),
        _click_probabilities,
        _click_loss,
    )


def _click_probabilities(model: nn.Module, *inputs: Any) -> Any:
    return torch.sigmoid(model(*inputs[:-1]))


def _click_loss(model: nn.Module, *inputs: Any) -> Tensor:
    return F.binary_cross_entropy_with_logits(model(*inputs[:-1])[:, 0].float(), inputs[-1])


class SplineFlow(nn.Module):
    """Maps numbers through monotone splines whose knots depend on the other half, as in neural spline flows."""

    def __init__(self, bins: int = 6) -> None:
        super().__init__()
        self.knots = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2 * (2 * bins)))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The mapped numbers of (items, 4), and the logarithm of the Jacobian's determinant."""
        kept, moved = x.float().chunk(2, -1)
        widths, heights = self.knots(kept).float().unflatten(-1, (2, -1)).chunk(2, -1)
        left, bottom = (F.pad(torch.softmax(sizes, -1).cumsum(-1), (1, 0)) for sizes in (widths, heights))
        inside = torch.sigmoid(moved)
        at = torch.searchsorted(left[..., :-1].contiguous(), inside[..., None], right=True) - 1
        at = at.clamp(0, widths.shape[-1] - 1)
        (start, end), (low, high) = ([x.gather(-1, at + step)[..., 0] for step in (0, 1)] for x in (left, bottom))
        slope = (high - low) / (end - start)
        return torch.cat([kept, low + slope * (inside - start)], -1), slope.log().sum(-1)


def spline_flow() -> NetworkWorkload:
    """Sixteen points."""
    return NetworkWorkload(
        SplineFlow(), (torch.randn(16, 4),), loss=lambda model, x: _negative_log_likelihood(*model(x))
    )


def _negative_log_likelihood(moved: Tensor, growth: Tensor) -> Tensor:
    return (moved.square().sum(-1) / 2 - growth).mean()
