"""Networks of timm, with the layers of the published ones and few of them."""

from __future__ import annotations

import torch

from ..workload import NetworkWorkload
from .dense import CLASSES, classifier
from .torchvision_import import import_torchvision

import_torchvision()
import timm  # noqa: E402 - it imports torchvision


def _classifier(name: str, **configuration: object) -> NetworkWorkload:
    model = timm.create_model(name, pretrained=False, num_classes=CLASSES, **configuration)
    return classifier(model, torch.rand(2, 3, 32, 32))


def resnet_50() -> NetworkWorkload:
    """The full ResNet-50, on small images."""
    return _classifier("resnet50")


def vision_transformer() -> NetworkWorkload:
    """A vision transformer of two blocks."""
    return _classifier("vit_tiny_patch16_224", img_size=32, depth=2)


def convnext() -> NetworkWorkload:
    """ConvNeXt with one block a stage."""
    return _classifier("convnext_atto", depths=(1, 1, 1, 1), dims=(8, 16, 32, 64))
