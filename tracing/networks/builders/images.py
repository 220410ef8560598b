"""Networks of convolutions."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - its usual name
from torch import Tensor, nn

from ..workload import NetworkWorkload
from .dense import CLASSES, classifier


class Residual(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *(nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU(inplace=True)),
            *(nn.Conv2d(after, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after)),
        )
        self.shortcut = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, image: Tensor) -> Tensor:
        """The block's output."""
        output: Tensor = torch.relu_(self.body(image) + self.shortcut(image))
        return output


def residual_network() -> NetworkWorkload:
    """The first layers of a ResNet, with its pooling at both ends."""
    layers = nn.Sequential(
        *(nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)),
        *(Residual(8, 16, 1), Residual(16, 32, 2)),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, CLASSES)),
    )
    return classifier(layers, torch.randn(2, 3, 32, 32))


class Detector(nn.Module):
    """Predicts boxes, confidences and classes at two scales, from features with an upsampled branch."""

    STRIDES = (4, 8)

    def __init__(self, classes: int = 4) -> None:
        super().__init__()
        self.classes = classes
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.SiLU(inplace=True))
        self.fine = nn.Sequential(nn.Conv2d(8, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.SiLU(inplace=True))
        self.coarse = nn.Sequential(nn.Conv2d(16, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.SiLU(inplace=True))
        self.pool = nn.MaxPool2d(5, 1, 2)
        self.heads = nn.ModuleList([nn.Conv2d(48, 5 + classes, 1), nn.Conv2d(32, 5 + classes, 1)])

    def forward(self, images: Tensor) -> Tensor:
        """For each cell of both scales: centre, size, confidence, classes; (image, cell, 5 + classes)."""
        fine = self.fine(self.stem(images))
        coarse = self.coarse(fine)
        coarse = torch.cat([coarse, self.pool(coarse)], 1)
        fine = torch.cat([fine, F.interpolate(coarse, scale_factor=2.0, mode="nearest")], 1)
        return torch.cat(
            [
                self._decoded(head(features), stride)
                for head, features, stride in zip(self.heads, (fine, coarse), self.STRIDES, strict=True)
            ],
            1,
        )

    def _decoded(self, features: Tensor, stride: int) -> Tensor:
        rows, columns = features.shape[-2:]
        grid = torch.meshgrid(
            torch.arange(rows, device=features.device), torch.arange(columns, device=features.device), indexing="ij"
        )
        corners = torch.stack([grid[1], grid[0]], -1).reshape(1, -1, 2)
        raw = features.flatten(2).transpose(1, 2)
        centre = (raw[..., :2].sigmoid() * 2 - 0.5 + corners) * stride
        size = (raw[..., 2:4].sigmoid() * 2) ** 2 * stride
        return torch.cat([centre, size, raw[..., 4:].sigmoid()], -1)


def detected(model: nn.Module, images: Tensor, _: Tensor) -> list[Tensor]:
    """The boxes of an image after non-maximum suppression."""
    return [suppressed(predicted) for predicted in model(images)]


def suppressed(predicted: Tensor, kept: int = 20, overlap: float = 0.5) -> Tensor:
    """Non-maximum suppression in operators of torch, for when torchvision has no kernel."""
    sureness, classes = (predicted[:, 4:5] * predicted[:, 5:]).max(-1)
    sureness, order = sureness.topk(kept)
    half = predicted[order, 2:4] / 2
    boxes = torch.cat([predicted[order, :2] - half, predicted[order, :2] + half], -1)
    boxes = boxes + classes[order].unsqueeze(-1) * 1000.0  # boxes of different classes are far from each other
    area = (boxes[:, 2:] - boxes[:, :2]).prod(-1)
    low = torch.maximum(boxes[:, None, :2], boxes[None, :, :2])
    high = torch.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    shared = (high - low).clamp(min=0).prod(-1)
    overlaps = torch.triu(shared / (area[:, None] + area[None] - shared) > overlap, diagonal=1)
    alone = ~overlaps.any(0) & (sureness > 0.01)
    return torch.cat([boxes[alone], sureness[alone].unsqueeze(-1)], -1)


def detection_loss(model: nn.Module, images: Tensor, objects: Tensor) -> Tensor:
    """The error of the boxes at the objects, and of confidences where there is no object."""
    predicted = model(images).float()
    places = objects[..., 0].long()
    at_objects = predicted.gather(1, places.unsqueeze(-1).expand(-1, -1, predicted.shape[-1]))
    boxes = F.smooth_l1_loss(at_objects[..., :4], objects[..., 1:5])
    wanted = torch.zeros_like(predicted[..., 4]).scatter_(1, places, 1.0)
    with torch.autocast(images.device.type, enabled=False):
        return boxes + F.binary_cross_entropy(predicted[..., 4].clamp(1e-4, 1 - 1e-4), wanted)


def detector() -> NetworkWorkload:
    """One image of each size that is divisible by the strides, and three objects in it."""
    places = torch.randint(0, 8 * 8 + 4 * 4, (2, 3, 1)).float()
    objects = torch.cat([places, torch.rand(2, 3, 4) * 32], -1)
    return NetworkWorkload(Detector(), (torch.rand(2, 3, 32, 32), objects), infer=detected, loss=detection_loss)


class StyleTransferNetwork(nn.Module):
    """Repaints an image: reflected borders, instance normalisation, upsampling."""

    def __init__(self) -> None:
        super().__init__()
        self.paint = nn.Sequential(
            *(nn.ReflectionPad2d(4), nn.Conv2d(3, 8, 9), nn.InstanceNorm2d(8, affine=True), nn.ReLU()),
            *(nn.Conv2d(8, 16, 3, 2, 1), nn.InstanceNorm2d(16, affine=True), nn.ReLU()),
            *(nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False), nn.Conv2d(16, 8, 3, 1, 1), nn.ReLU()),
            *(nn.ReplicationPad2d(1), nn.Conv2d(8, 3, 3), nn.Tanh()),
        )
        self.look = nn.Sequential(nn.Conv2d(3, 8, 3, 1, 1), nn.ReLU(), nn.AvgPool2d(2), nn.Conv2d(8, 8, 3, 1, 1))

    def forward(self, image: Tensor) -> Tensor:
        """The repainted image."""
        stylized: Tensor = self.paint(image)
        return stylized

    def gram(self, image: Tensor) -> Tensor:
        """The Gram matrix of the features, which represents style."""
        features = self.look(image).flatten(2)
        return torch.bmm(features, features.transpose(1, 2)) / features.shape[-1]


def stylized(model: StyleTransferNetwork, image: Tensor, _: Tensor) -> Tensor:
    """The repainted image."""
    return model(image)


def style_loss(model: StyleTransferNetwork, image: Tensor, style: Tensor) -> Tensor:
    """The style loss, the content loss and the total variation."""
    new = model(image)
    rough = (new[..., 1:] - new[..., :-1]).abs().mean() + (new[..., 1:, :] - new[..., :-1, :]).abs().mean()
    return F.mse_loss(model.gram(new), model.gram(style).detach()) + F.l1_loss(new, image) + 0.1 * rough


def style_transfer() -> NetworkWorkload:
    """Style transfer of an image."""
    return NetworkWorkload(
        StyleTransferNetwork(), (torch.rand(1, 3, 32, 32), torch.rand(1, 3, 32, 32)), infer=stylized, loss=style_loss
    )


class GeneratorAndDiscriminator(nn.Module):
    """A generator by transposed convolutions and a discriminator with spectral normalisation."""

    def __init__(self) -> None:
        super().__init__()
        self.generator = nn.Sequential(
            *(nn.ConvTranspose2d(16, 16, 4), nn.BatchNorm2d(16), nn.ReLU()),
            *(nn.ConvTranspose2d(16, 8, 4, 2, 1), nn.BatchNorm2d(8), nn.ReLU()),
            *(nn.ConvTranspose2d(8, 3, 4, 2, 1), nn.Tanh()),
        )
        normalised = nn.utils.parametrizations.spectral_norm
        self.discriminator = nn.Sequential(
            *(normalised(nn.Conv2d(3, 8, 4, 2, 1)), nn.LeakyReLU(0.2), nn.Dropout2d(0.1)),
            *(normalised(nn.Conv2d(8, 8, 4, 2, 1)), nn.PReLU(), nn.Flatten(), nn.Linear(128, 1)),
        )

    def forward(self, noise: Tensor) -> Tensor:
        """Images from noise."""
        images: Tensor = self.generator(noise)
        return images

    def judge(self, images: Tensor) -> Tensor:
        """The discriminator's output; in full precision, since spectral normalisation mixes dtypes under autocast."""
        with torch.autocast(images.device.type, enabled=False):
            judgement: Tensor = self.discriminator(images.float())
        return judgement


def generated(model: GeneratorAndDiscriminator, noise: Tensor, _: Tensor) -> Tensor:
    """Images from noise."""
    return model(noise)


def adversarial_loss(model: GeneratorAndDiscriminator, noise: Tensor, real: Tensor) -> Tensor:
    """Both losses of a step, and the penalty on the discriminator's gradient, which is differentiated twice."""
    fake = model(noise)
    right = model.judge(real)
    wrong = model.judge(fake.detach())
    judged = F.binary_cross_entropy_with_logits(right, torch.ones_like(right))
    judged = judged + F.binary_cross_entropy_with_logits(wrong, torch.zeros_like(wrong))
    deceived = F.softplus(-model.judge(fake)).mean()
    between = torch.lerp(real, fake.detach().to(real.dtype), torch.rand(len(real), 1, 1, 1, device=real.device))
    between.requires_grad_()
    (slope,) = torch.autograd.grad(model.judge(between).sum(), between, create_graph=True)
    return judged + deceived + (slope.flatten(1).norm(2, dim=1) - 1).pow(2).mean()


def gan() -> NetworkWorkload:
    """Noise and real images."""
    return NetworkWorkload(
        GeneratorAndDiscriminator(),
        (torch.randn(2, 16, 1, 1), torch.rand(2, 3, 16, 16)),
        infer=generated,
        loss=adversarial_loss,
    )


class VolumeNetwork(nn.Module):
    """A U-Net over volumes: pooling, a transposed convolution, and a skip connection."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Sequential(nn.Conv3d(1, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.LeakyReLU(0.1))
        self.pool = nn.MaxPool3d(2)
        self.bottom = nn.Sequential(nn.Conv3d(4, 8, 3, padding=1), nn.InstanceNorm3d(8, affine=True), nn.ELU())
        self.up = nn.ConvTranspose3d(8, 4, 2, 2)
        self.out = nn.Conv3d(12, 2, 1)

    def forward(self, volume: Tensor) -> Tensor:
        """The class of each voxel."""
        down = self.down(volume)
        bottom = self.bottom(self.pool(down))
        smooth = F.interpolate(bottom[:, :4], scale_factor=2, mode="trilinear", align_corners=False)
        classes: Tensor = self.out(torch.cat([down, self.up(bottom), smooth], 1))
        return classes


def dice_loss(model: nn.Module, volume: Tensor, mask: Tensor) -> Tensor:
    """Cross entropy and Dice loss."""
    classes = model(volume).float()
    inside = classes.softmax(1)[:, 1]
    wanted = mask.float()
    overlap = 2 * (inside * wanted).sum((1, 2, 3)) / (inside.sum((1, 2, 3)) + wanted.sum((1, 2, 3)) + 1)
    return F.cross_entropy(classes, mask) + 1 - overlap.mean()


def segmented(model: nn.Module, volume: Tensor, _: Tensor) -> Tensor:
    """The class of each voxel."""
    classes: Tensor = model(volume)
    return classes.argmax(1)


def unet_3d() -> NetworkWorkload:
    """A volume and which of its voxels belong to the organ."""
    inputs = (torch.rand(1, 1, 8, 8, 8), torch.randint(0, 2, (1, 8, 8, 8)))
    return NetworkWorkload(VolumeNetwork(), inputs, infer=segmented, loss=dice_loss)
