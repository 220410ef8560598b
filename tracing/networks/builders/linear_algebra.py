"""Networks that decompose matrices or solve systems: what people report about torch.linalg on mps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - its usual name
from torch import Tensor, nn

from ..workload import NetworkWorkload

CLASSES = 3


def _in_float32(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function without autocast, as decompositions need it."""

    def call(model: nn.Module, *inputs: Tensor) -> Any:
        with torch.autocast(inputs[0].device.type, enabled=False):
            return function(model, *inputs)

    return call


class TableTransformer(nn.Module):
    """Classes of the rows of a table, from other rows whose classes are given, as TabPFN does it.

    Columns are standardized and extended by the projections of a singular value decomposition.
    """

    def __init__(self, columns: int = 6, width: int = 16, components: int = 3) -> None:
        super().__init__()
        self.components = components
        self.cells = nn.Linear(columns + components, width)
        self.classes = nn.Embedding(CLASSES, width)
        self.layer = nn.TransformerEncoderLayer(width, 2, 32, dropout=0.0, batch_first=True)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, table: Tensor, classes: Tensor) -> Tensor:
        """Logits of the rows behind those of `classes`; cells that are NaN are missing."""
        num_labelled = len(classes)
        mean = table[:num_labelled].nanmean(0)
        deviation = (table[:num_labelled] - mean).nan_to_num().square().mean(0).sqrt() + 1e-6
        rows = ((table - mean) / deviation).nan_to_num().clamp(-10.0, 10.0)
        with torch.no_grad():
            _, _, directions = torch.linalg.svd(rows[:num_labelled].float(), full_matrices=False)
        rows = torch.cat([rows, rows @ directions[: self.components].T.to(rows)], 1)
        tokens = self.cells(rows)
        tokens = torch.cat([tokens[:num_labelled] + self.classes(classes), tokens[num_labelled:]])
        mask = torch.zeros(len(table), len(table), dtype=torch.bool, device=table.device)
        mask[:, num_labelled:] = True
        mask.fill_diagonal_(False)
        answers: Tensor = self.head(self.layer(tokens[None], src_mask=mask)[0, num_labelled:])
        return answers


def table_transformer() -> NetworkWorkload:
    """Twenty rows, of which twelve have classes; some cells are missing."""
    table = torch.randn(20, 6)
    table[3, 2] = torch.nan
    classes = torch.randint(0, CLASSES, (20,))
    return NetworkWorkload(
        TableTransformer(),
        (table, classes),
        infer=lambda model, table, classes: model(table, classes[:12]),
        loss=lambda model, table, classes: F.cross_entropy(model(table, classes[:12]), classes[12:]),
    )


class HomographyNetwork(nn.Module):
    """Warps images by homographies of four moved corners, found by the direct linear transform as in kornia."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(2, 4, 3, stride=2, padding=1), nn.ReLU(), nn.Flatten())
        self.moves = nn.Linear(4 * 8 * 8, 8)

    @_in_float32
    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """The first images, warped towards the second ones."""
        moved = 0.1 * torch.tanh(self.moves(self.features(torch.cat([first, second], 1)))).float().view(-1, 4, 2)
        corners = torch.tensor([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]], device=first.device)
        corners = corners.expand_as(moved)
        homography = _homography(corners, corners + moved)
        axis = torch.linspace(-1.0, 1.0, first.shape[-1], device=first.device)
        x, y = torch.meshgrid(axis, axis, indexing="xy")
        places = torch.stack([x, y, torch.ones_like(x)], -1).view(1, -1, 3) @ homography.mT
        grid = (places[..., :2] / places[..., 2:]).view(-1, *first.shape[-2:], 2)
        return F.grid_sample(first.float(), grid, align_corners=True)


def _homography(source: Tensor, target: Tensor) -> Tensor:
    """(items, 3, 3) that take the points `source`, (items, 4, 2), to `target`: the null vectors of their equations."""
    ones, zeros = torch.ones_like(source[..., :1]), torch.zeros_like(source[..., :1])
    points = torch.cat([source, ones], -1)
    x, y = target[..., :1], target[..., 1:]
    none = zeros.expand_as(points)
    equations = torch.cat([torch.cat([points, none, -x * points], -1), torch.cat([none, points, -y * points], -1)], -2)
    _, _, directions = torch.linalg.svd(equations)
    matrices = directions[..., -1, :].unflatten(-1, (3, 3))
    return matrices / matrices[..., 2:, 2:]


def homography_network() -> NetworkWorkload:
    """Two pairs of images; the last vectors of a decomposition have no gradient where the equations are square."""
    images = torch.rand(2, 1, 16, 16), torch.rand(2, 1, 16, 16)
    return NetworkWorkload(HomographyNetwork(), images, loss=_homography_loss)


@_in_float32
def _homography_loss(model: HomographyNetwork, first: Tensor, second: Tensor) -> Tensor:
    """The distance between the network's weights and the solution of the normal equations for its features."""
    features = model.features(torch.cat([first, second], 1))
    gram = features.float().T @ features.float() + torch.eye(features.shape[1], device=first.device)
    wanted = torch.linalg.solve(gram, features.float().T @ torch.ones(len(first), 8, device=first.device))
    return F.mse_loss(model.moves.weight.T, wanted)


class PointRegistration(nn.Module):
    """Rigid motions between clouds of points: soft matches, then Kabsch's method."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.embed = nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Linear(width, width))

    @_in_float32
    def forward(self, source: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Rotations and translations for (items, points, 3)."""
        distances = torch.cdist(self.embed(source).float(), self.embed(target).float())
        matched = torch.softmax(-distances, -1) @ target.float()
        center, goal = source.float().mean(1, keepdim=True), matched.mean(1, keepdim=True)
        u, _, vh = torch.linalg.svd((source.float() - center).mT @ (matched - goal))
        flips = torch.ones_like(u[..., 0])
        flips = torch.cat([flips[..., :2], torch.linalg.det(u @ vh)[..., None]], -1)
        rotations = (u * flips[..., None, :]) @ vh
        return rotations, goal - center @ rotations


def point_registration() -> NetworkWorkload:
    """Two clouds of 32 points, turned by a quarter."""
    cloud = torch.randn(2, 32, 3)
    turned = cloud @ torch.tensor([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    return NetworkWorkload(PointRegistration(), (cloud, turned), loss=_registration_loss)


@_in_float32
def _registration_loss(model: PointRegistration, source: Tensor, target: Tensor) -> Tensor:
    rotations, moves = model(source, target)
    return F.mse_loss(source.float() @ rotations + moves, target.float())


class GaussianProcess(nn.Module):
    """Regression by a Gaussian process with a deep kernel."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 2))
        self.noise = nn.Parameter(torch.tensor(-1.0))

    def covariance(self, x: Tensor, y: Tensor) -> Tensor:
        """By the distance of features."""
        return torch.exp(-torch.cdist(self.features(x).float(), self.features(y).float()).square())

    def factor(self, x: Tensor) -> Tensor:
        """The Cholesky factor of the observations' covariance."""
        identity = torch.eye(len(x), device=x.device)
        return torch.linalg.cholesky(self.covariance(x, x) + F.softplus(self.noise) * identity)

    def forward(self, x: Tensor, values: Tensor, new: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance at new places."""
        factor, between = self.factor(x), self.covariance(x, new)
        half = torch.linalg.solve_triangular(factor, between, upper=False)
        mean = between.T @ torch.cholesky_solve(values[:, None].float(), factor)
        return mean[:, 0], 1.0 - half.square().sum(0)


def gaussian_process() -> NetworkWorkload:
    """Twenty observations."""
    inputs = torch.randn(20, 4), torch.randn(20), torch.randn(5, 4)
    return NetworkWorkload(GaussianProcess(), inputs, loss=_negative_log_likelihood)


def _negative_log_likelihood(model: GaussianProcess, x: Tensor, values: Tensor, _: Tensor) -> Tensor:
    """The negative log likelihood of the observations."""
    factor = model.factor(x)
    half = torch.linalg.solve_triangular(factor, values[:, None].float(), upper=False)
    return half.square().sum() / 2 + factor.diagonal().log().sum()


class OrthogonalNetwork(nn.Module):
    """Layers whose weights stay orthogonal: by an exponential, by reflectors, and one of spectral norm 1."""

    def __init__(self, width: int = 12) -> None:
        super().__init__()
        orthogonal = nn.utils.parametrizations.orthogonal
        self.layers = nn.Sequential(
            orthogonal(nn.Linear(width, width), orthogonal_map="matrix_exp"),
            nn.Tanh(),
            orthogonal(nn.Linear(width, width), orthogonal_map="householder"),
            nn.Tanh(),
            nn.utils.parametrizations.spectral_norm(nn.Linear(width, CLASSES)),
        )

    @_in_float32
    def forward(self, x: Tensor) -> Tensor:
        """The output of the layers."""
        answer: Tensor = self.layers(x)
        return answer


def orthogonal_network() -> NetworkWorkload:
    """Six vectors."""
    return NetworkWorkload(OrthogonalNetwork(), (torch.randn(6, 12),))
