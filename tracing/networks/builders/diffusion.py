"""The computing parts of Stable Diffusion, from diffusers, with few channels and random weights."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - its usual name
from torch import Tensor, nn

from ..workload import NetworkWorkload
from .torchvision_import import import_torchvision

import_torchvision()
import diffusers  # noqa: E402 - it imports transformers, and that torchvision


def _denoised(model: Any, noisy: Tensor, text: Tensor, _: Tensor) -> Tensor:
    """Two steps of the scheduler that pipelines use by default, with guidance."""
    scheduler = diffusers.EulerDiscreteScheduler()
    scheduler.set_timesteps(2, device=noisy.device)
    for time in scheduler.timesteps:
        both = scheduler.scale_model_input(torch.cat([noisy, noisy]), time)
        without, towards = model(both, time, encoder_hidden_states=torch.cat([text, text])).sample.chunk(2)
        noisy = scheduler.step(without + 5.0 * (towards - without), time, noisy).prev_sample
    return noisy


def _noise_loss(model: Any, noisy: Tensor, text: Tensor, noise: Tensor) -> Tensor:
    times = torch.randint(0, 1000, (len(noisy),), device=noisy.device)
    predicted = model(noisy, times, encoder_hidden_states=text).sample
    return F.mse_loss(predicted.float(), noise)


def stable_diffusion_unet() -> NetworkWorkload:
    """A U-Net with its kinds of blocks and cross attention to a text."""
    model = diffusers.UNet2DConditionModel(
        sample_size=8,
        block_out_channels=(8, 16),
        layers_per_block=1,
        norm_num_groups=4,
        cross_attention_dim=16,
        attention_head_dim=4,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
    )
    inputs = (torch.randn(1, 4, 8, 8), torch.randn(1, 6, 16), torch.randn(1, 4, 8, 8))
    return NetworkWorkload(model, inputs, infer=_denoised, loss=_noise_loss)


def _decoded(model: Any, images: Tensor) -> Any:
    """Encode and decode, as image-to-image does."""
    return model(images).sample


def _evidence(model: Any, images: Tensor) -> Tensor:
    """The loss of a variational autoencoder."""
    latent = model.encode(images).latent_dist
    again = model.decode(latent.sample()).sample
    divergence: Tensor = latent.kl().mean()
    return F.mse_loss(again.float(), images) + 1e-4 * divergence


def stable_diffusion_vae() -> NetworkWorkload:
    """An encoder and a decoder of two blocks each, with attention between them."""
    model: nn.Module = diffusers.AutoencoderKL(
        block_out_channels=(8, 16),
        down_block_types=("DownEncoderBlock2D", "DownEncoderBlock2D"),
        up_block_types=("UpDecoderBlock2D", "UpDecoderBlock2D"),
        layers_per_block=1,
        norm_num_groups=4,
        sample_size=32,
    )
    return NetworkWorkload(model, (torch.rand(1, 3, 32, 32),), infer=_decoded, loss=_evidence)
