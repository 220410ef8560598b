"""Transformers from small configurations with random weights; nothing is downloaded."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ..workload import NetworkWorkload
from .torchvision_import import import_torchvision

import_torchvision()
import transformers  # noqa: E402 - it imports torchvision

WORDS = 64
# Small sizes for all of these networks.
_SMALL = {
    "vocab_size": WORDS,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
}
_WITHOUT_SPECIAL_WORDS = {"bos_token_id": 1, "eos_token_id": None, "pad_token_id": 0}


def _own_loss(model: nn.Module, inputs: dict[str, Tensor]) -> Tensor:
    """The loss that the model computes itself, for labels among its inputs."""
    loss: Tensor = model(**inputs).loss
    return loss


def _without_labels(model: nn.Module, inputs: dict[str, Tensor]) -> Any:
    return model(**{name: value for name, value in inputs.items() if name != "labels"})


def bert() -> NetworkWorkload:
    """A classifier of sentences that are padded."""
    model = transformers.BertForSequenceClassification(transformers.BertConfig(**_SMALL, num_labels=3))
    mask = torch.ones(2, 12, dtype=torch.long)
    mask[0, 8:] = 0
    inputs = {"input_ids": torch.randint(2, WORDS, (2, 12)), "attention_mask": mask, "labels": torch.tensor([0, 2])}
    return NetworkWorkload(model, (inputs,), infer=_without_labels, loss=_own_loss)


def _written_on(model: Any, inputs: dict[str, Tensor]) -> Any:
    """Generate eight tokens, sampled from the most probable ones."""
    mask = torch.ones_like(inputs["input_ids"])
    return model.generate(
        inputs["input_ids"], attention_mask=mask, max_new_tokens=8, do_sample=True, top_k=8, top_p=0.9, temperature=0.8
    )


def _decoder(model: Any) -> NetworkWorkload:
    words = torch.randint(2, WORDS, (2, 10))
    return NetworkWorkload(model, ({"input_ids": words, "labels": words},), infer=_written_on, loss=_own_loss)


def llama() -> NetworkWorkload:
    """A decoder with rotary positions and grouped queries, which generates text."""
    configuration = transformers.LlamaConfig(**_SMALL, **_WITHOUT_SPECIAL_WORDS, num_key_value_heads=2)
    return _decoder(transformers.LlamaForCausalLM(configuration))


def mixtral() -> NetworkWorkload:
    """A decoder like llama's, with two of four experts for each token."""
    configuration = transformers.MixtralConfig(
        **_SMALL, **_WITHOUT_SPECIAL_WORDS, num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2
    )
    return _decoder(transformers.MixtralForCausalLM(configuration))


def whisper() -> NetworkWorkload:
    """Speech recognition from a spectrogram; inference generates four tokens."""
    configuration = transformers.WhisperConfig(
        vocab_size=WORDS,
        num_mel_bins=8,
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        max_source_positions=20,
        max_target_positions=32,
        decoder_start_token_id=1,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
        suppress_tokens=None,
        begin_suppress_tokens=None,
    )
    model = transformers.WhisperForConditionalGeneration(configuration)
    model.generation_config.update(suppress_tokens=None, begin_suppress_tokens=None)
    inputs = {"input_features": torch.randn(2, 8, 40), "labels": torch.randint(3, WORDS, (2, 6))}
    return NetworkWorkload(model, (inputs,), infer=_transcribed, loss=_own_loss)


def _transcribed(model: Any, inputs: dict[str, Tensor]) -> Any:
    return model.generate(inputs["input_features"], max_new_tokens=4)


def clip() -> NetworkWorkload:
    """The contrastive loss of images and texts."""
    text = {**_SMALL, "eos_token_id": WORDS - 1, "bos_token_id": 1, "pad_token_id": 0}
    del text["max_position_embeddings"]
    image = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    configuration = transformers.CLIPConfig(
        text_config={**text, "max_position_embeddings": 16},
        vision_config={**image, "image_size": 32, "patch_size": 8},
        projection_dim=16,
    )
    words = torch.randint(2, WORDS - 1, (3, 8))
    words[:, -1] = WORDS - 1
    inputs = {"input_ids": words, "pixel_values": torch.rand(3, 3, 32, 32)}
    return NetworkWorkload(
        transformers.CLIPModel(configuration),
        (inputs,),
        infer=lambda model, inputs: model(**inputs),
        loss=lambda model, inputs: model(**inputs, return_loss=True).loss,
    )
