"""The networks that people run on Macs, each with the function that builds a small version of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...errors import MpsmithError, near

EXTRA = "pip install 'mpsmith[networks]'"
_BUILDERS = f"{__package__}.builders"


@dataclass(frozen=True)
class Network:
    """A network.

    Attributes:
        name: selects it on the command line.
        title: a description.
        builder: the function that builds it, `module:function`.
        library: the package that it needs beside torch, or "".
    """

    name: str
    title: str
    builder: str
    library: str = ""

    @property
    def is_user_supplied(self) -> bool:
        """Whether the user supplied it."""
        return self not in NETWORKS


def _of(module: str, name: str, title: str, library: str = "") -> Network:
    return Network(name, title, f"{_BUILDERS}.{module}:{name.replace('-', '_')}", library)


NETWORKS: tuple[Network, ...] = (
    _of("dense", "softshrink", "Sequential with Softshrink"),
    _of("dense", "mlp", "multilayer perceptron"),
    _of("dense", "mixture-of-experts", "mixture of experts, routed by top-k"),
    _of("images", "residual-network", "small residual network"),
    _of("images", "detector", "YOLO-style detector with non-maximum suppression"),
    _of("images", "style-transfer", "style transfer by Gram matrices"),
    _of("images", "gan", "generative adversarial training"),
    _of("images", "unet-3d", "3-D U-Net"),
    _of("sequences", "transformer-encoder", "TransformerEncoder with a padding mask"),
    _of("sequences", "lstm", "bidirectional LSTM over packed sequences"),
    _of("sequences", "gru", "GRU"),
    _of("sequences", "ctc-speech", "speech recognition trained with CTC"),
    _of("sequences", "state-space", "selective state-space model"),
    _of("fields", "nerf", "NeRF with a hash encoding"),
    _of("fields", "graph-network", "graph attention network by scatter"),
    _of("fields", "fft-filter", "filter in the frequency domain"),
    _of("fields", "spatial-transformer", "spatial transformer by grid sampling"),
    _of("linear_algebra", "table-transformer", "classifier of tables in context, as TabPFN"),
    _of("linear_algebra", "homography-network", "homographies by decomposition, as kornia's geometry"),
    _of("linear_algebra", "point-registration", "registration of point clouds by Kabsch's method"),
    _of("linear_algebra", "gaussian-process", "Gaussian process with a deep kernel"),
    _of("linear_algebra", "orthogonal-network", "layers with orthogonal and spectrally normed weights"),
    _of("reported", "count-autoencoder", "autoencoder of gene counts, as scvi-tools"),
    _of("reported", "nested-text-encoder", "text encoder with nested tensors"),
    _of("reported", "sparse-graph-network", "graph convolution by sparse matrices"),
    _of("reported", "recommender", "recommender with bags of embeddings"),
    _of("reported", "spline-flow", "normalizing flow of rational quadratic splines"),
    _of("timm_models", "resnet-50", "ResNet-50", "timm"),
    _of("timm_models", "vision-transformer", "vision transformer", "timm"),
    _of("timm_models", "convnext", "ConvNeXt", "timm"),
    _of("hugging_face", "bert", "BERT classifier", "transformers"),
    _of("hugging_face", "llama", "Llama-style decoder with generation", "transformers"),
    _of("hugging_face", "mixtral", "Mixtral-style mixture of experts", "transformers"),
    _of("hugging_face", "whisper", "Whisper", "transformers"),
    _of("hugging_face", "clip", "CLIP", "transformers"),
    _of("diffusion", "stable-diffusion-unet", "Stable Diffusion's UNet", "diffusers"),
    _of("diffusion", "stable-diffusion-vae", "Stable Diffusion's VAE", "diffusers"),
)


def networks_named(names: Sequence[str]) -> tuple[Network, ...]:
    """The networks with these names, or all of them; MODULE:FUNCTION is one of the user's. Raises MpsmithError."""
    by_name = {network.name: network for network in NETWORKS}
    by_name |= {name: user_network(name) for name in names if ":" in name}
    for name in names:
        if name not in by_name:
            raise MpsmithError(f"there is no network {name}{near(name, by_name)}; there are {', '.join(by_name)}")
    return tuple(by_name[name] for name in dict.fromkeys(names)) if names else NETWORKS


def user_network(builder: str) -> Network:
    """A network that the user supplies. Raises MpsmithError if the text is not a `module:function`."""
    module, _, function = builder.partition(":")
    if not module or not function.isidentifier():
        raise MpsmithError(f"{builder}: name a function as package.module:function")
    return Network(builder, builder, builder)
