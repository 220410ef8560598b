"""Networks over points, graphs and frequencies."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - its usual name
from torch import Tensor, nn

from ..workload import NetworkWorkload
from .dense import CLASSES, classifier


class HashEncoding(nn.Module):
    """Features of points from tables that are looked up by a hash of the grid's corners around them."""

    PRIMES = (1, 2654435761, 805459861)
    corners: Tensor

    def __init__(self, levels: int = 4, size: int = 256, features: int = 2) -> None:
        super().__init__()
        self.size = size
        self.tables = nn.Parameter(torch.rand(levels, size, features) * 1e-2)
        self.resolutions = [4 * 2**level for level in range(levels)]
        corners = torch.tensor([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)])
        self.register_buffer("corners", corners)

    def forward(self, points: Tensor) -> Tensor:
        """The features of all levels for points of (number, 3) in the unit cube."""
        features = []
        for table, resolution in zip(self.tables, self.resolutions, strict=True):
            scaled = points * resolution
            low = torch.floor(scaled)
            inside = (scaled - low).unsqueeze(1)
            cells = low.long().unsqueeze(1) + self.corners
            hashed = cells[..., 0] * self.PRIMES[0]
            for axis in (1, 2):
                hashed = torch.bitwise_xor(hashed, cells[..., axis] * self.PRIMES[axis])
            weights = torch.where(self.corners.bool(), inside, 1 - inside).prod(-1, keepdim=True)
            features.append((table[torch.remainder(hashed, self.size)] * weights).sum(1))
        return torch.cat(features, -1)


class RadianceField(nn.Module):
    """Colours of rays: points along them are encoded, their density and colour are summed up along the ray."""

    def __init__(self, points: int = 8) -> None:
        super().__init__()
        self.points = points
        self.encoding = HashEncoding()
        self.density = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16))
        self.colour = nn.Sequential(nn.Linear(16 + 12, 32), nn.ReLU(), nn.Linear(32, 3), nn.Sigmoid())

    def forward(self, origins: Tensor, directions: Tensor) -> Tensor:
        """The colours of rays, (number, 3)."""
        edges = torch.linspace(0, 1, self.points + 1, device=origins.device)
        depths = edges[:-1] + (edges[1:] - edges[:-1]) * torch.rand(len(origins), self.points, device=origins.device)
        places = origins.unsqueeze(1) + directions.unsqueeze(1) * depths.unsqueeze(-1)
        features = self.density(self.encoding(places.reshape(-1, 3).clamp(0, 1)))
        waves = torch.cat([torch.sin(directions * 2**k) for k in range(2)], -1)
        waves = torch.cat([waves, torch.cos(directions), directions], -1)
        seen = torch.cat([features, waves.repeat_interleave(self.points, 0)], -1)
        colours = self.colour(seen).view(-1, self.points, 3).float()
        density = F.softplus(features[:, 0]).view(-1, self.points).float()
        gaps = torch.diff(depths, dim=1, append=torch.full_like(depths[:, :1], 2.0))
        opaque = 1 - torch.exp(-density * gaps)
        through = torch.cumprod(torch.cat([torch.ones_like(opaque[:, :1]), 1 - opaque + 1e-10], 1), 1)[:, :-1]
        return (opaque * through).unsqueeze(-1).mul(colours).sum(1)


def nerf() -> NetworkWorkload:
    """A radiance field, trained on rays and their colours."""
    directions = F.normalize(torch.rand(16, 3), dim=-1)
    return NetworkWorkload(
        RadianceField(),
        (torch.rand(16, 3), directions, torch.rand(16, 3)),
        infer=lambda model, origins, directions, _: model(origins, directions),
        loss=lambda model, origins, directions, seen: F.mse_loss(model(origins, directions), seen),
    )


class GraphAttention(nn.Module):
    """Sums neighbours with weights from a softmax over each node's edges."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.project = nn.Linear(before, after)
        self.attend = nn.Linear(2 * after, 1)

    def forward(self, nodes: Tensor, sources: Tensor, targets: Tensor) -> Tensor:
        """New features of the nodes."""
        features = self.project(nodes)
        ends = torch.cat([features[sources], features.index_select(0, targets)], -1)
        score = F.leaky_relu(self.attend(ends).squeeze(-1), 0.2).float()
        highest = torch.full((len(nodes),), -torch.inf, device=nodes.device)
        highest = highest.scatter_reduce(0, targets, score.detach(), "amax")
        weight = torch.exp(score - highest[targets])
        total = torch.zeros(len(nodes), device=nodes.device).scatter_add(0, targets, weight)
        message = (features[sources] * (weight / (total[targets] + 1e-9)).unsqueeze(-1)).float()
        return torch.zeros(len(nodes), features.shape[-1], device=nodes.device).index_add(0, targets, message)


class GraphNetwork(nn.Module):
    """Two rounds of messages, then the mean over the nodes of each graph."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = GraphAttention(8, 16), GraphAttention(16, 16)
        self.out = nn.Linear(16, CLASSES)

    def forward(self, nodes: Tensor, edges: Tensor, graphs: Tensor) -> Tensor:
        """The classes of the graphs."""
        sources, targets = edges
        features = self.second(F.elu(self.first(nodes, sources, targets)), sources, targets)
        number = int(graphs.max()) + 1
        sums = torch.zeros(number, features.shape[-1], device=features.device)
        sums = sums.scatter_add(0, graphs.unsqueeze(-1).expand_as(features), features)
        return self.out(sums / torch.bincount(graphs, minlength=number).unsqueeze(-1))


def graph_network() -> NetworkWorkload:
    """Two graphs of six nodes."""
    edges = torch.cat([torch.randint(0, 6, (2, 15)), torch.randint(6, 12, (2, 15))], 1)
    return NetworkWorkload(
        GraphNetwork(),
        (torch.randn(12, 8), edges, torch.arange(12) // 6, torch.tensor([0, 1])),
        infer=lambda model, nodes, edges, graphs, _: model(nodes, edges, graphs),
        loss=lambda model, nodes, edges, graphs, classes: F.cross_entropy(model(nodes, edges, graphs), classes),
    )


class FrequencyFilter(nn.Module):
    """Images weighted in the frequency domain, as in Fourier neural operators."""

    def __init__(self, channels: int = 4, size: int = 16) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.randn(channels, size, size // 2 + 1, 2) * 0.1)
        self.mix = nn.Conv2d(channels, channels, 1)

    def forward(self, images: Tensor) -> Tensor:
        """The filtered images."""
        spectrum = torch.fft.rfft2(images.float(), norm="ortho")
        kept = torch.fft.fftshift(spectrum * torch.view_as_complex(self.weights), dim=-2)
        filtered = torch.fft.irfft2(torch.fft.ifftshift(kept, dim=-2), s=images.shape[-2:], norm="ortho")
        return F.gelu(filtered + self.mix(images)) * spectrum.abs().mean((1, 2, 3), keepdim=True)


def fft_filter() -> NetworkWorkload:
    """Two filters and a classifier."""
    layers = nn.Sequential(
        FrequencyFilter(), FrequencyFilter(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(64, CLASSES)
    )
    return classifier(layers, torch.randn(2, 4, 16, 16))


class SpatialTransformer(nn.Module):
    """Rotates each image by the output of a small network, then classifies it."""

    def __init__(self) -> None:
        super().__init__()
        self.look = nn.Sequential(nn.Conv2d(3, 4, 5, 2), nn.ReLU(), nn.AdaptiveMaxPool2d(3), nn.Flatten())
        self.turn = nn.Linear(36, 6)
        nn.init.zeros_(self.turn.weight)
        self.turn.bias.data.copy_(torch.tensor([1.0, 0, 0, 0, 1, 0]))
        self.out = nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, CLASSES))

    def forward(self, images: Tensor) -> Tensor:
        """The classes of the images."""
        grid = F.affine_grid(self.turn(self.look(images)).view(-1, 2, 3).float(), list(images.shape), False)
        turned = F.grid_sample(images, grid, padding_mode="border", align_corners=False)
        sharp = F.grid_sample(images, grid, mode="bicubic", align_corners=False)
        classes: Tensor = self.out((turned + sharp) / 2)
        return classes


def spatial_transformer() -> NetworkWorkload:
    """A batch of small images."""
    return classifier(SpatialTransformer(), torch.rand(2, 3, 16, 16))
