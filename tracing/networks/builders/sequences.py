"""Networks over sequences."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - its usual name
from torch import Tensor, nn

from ..workload import NetworkWorkload
from .dense import CLASSES, classifier


class MaskedEncoder(nn.Module):
    """torch's own encoder, over tokens with padding."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, width, padding_idx=0)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.out = nn.Linear(width, CLASSES)

    def forward(self, tokens: Tensor) -> Tensor:
        """The classes of the sequences; token 0 is padding."""
        padding = tokens == 0
        encoded = self.encoder(self.embedding(tokens), src_key_padding_mask=padding)
        encoded = encoded.masked_fill(padding.unsqueeze(-1), 0.0)
        classes: Tensor = self.out(encoded.sum(1) / (~padding).sum(1, keepdim=True))
        return classes


def transformer_encoder() -> NetworkWorkload:
    """Sequences of different lengths."""
    tokens = torch.randint(1, 50, (3, 12))
    tokens[0, 7:] = 0
    tokens[1, 10:] = 0
    return classifier(MaskedEncoder(), tokens)


class Recurrent(nn.Module):
    """A recurrent network with an embedding and a classifier; `lengths` are on the CPU, as torch requires."""

    def __init__(self, recurrent: nn.Module, width: int, *, packed: bool) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, 16)
        self.recurrent = recurrent
        self.out = nn.Linear(width, CLASSES)
        self.packed = packed

    def forward(self, tokens: Tensor) -> Tensor:
        """The classes of the sequences."""
        embedded = self.embedding(tokens)
        if not self.packed:
            return self.out(self.recurrent(embedded)[0][:, -1])
        lengths = (tokens != 0).sum(1).cpu()
        packed = nn.utils.rnn.pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
        output, _ = nn.utils.rnn.pad_packed_sequence(self.recurrent(packed)[0], batch_first=True)
        return self.out(output.mean(1))


def lstm() -> NetworkWorkload:
    """Two layers, both directions, sequences of different lengths."""
    tokens = torch.randint(1, 50, (3, 10))
    tokens[1, 6:] = 0
    network = nn.LSTM(16, 24, num_layers=2, bidirectional=True, batch_first=True, dropout=0.1)
    return classifier(Recurrent(network, 48, packed=True), tokens)


def gru() -> NetworkWorkload:
    """Two layers."""
    network = nn.GRU(16, 24, num_layers=2, batch_first=True, dropout=0.1)
    return classifier(Recurrent(network, 24, packed=False), torch.randint(1, 50, (3, 10)))


class Listener(nn.Module):
    """Recognises letters in sound: a spectrogram on a mel scale, convolutions over time, a GRU."""

    LETTERS = 12
    window: Tensor
    scale: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(64))
        self.register_buffer("scale", torch.rand(33, 16))
        self.convolutions = nn.Sequential(nn.Conv1d(16, 24, 3, 2, 1), nn.BatchNorm1d(24), nn.GELU())
        self.recurrent = nn.GRU(24, 24, batch_first=True, bidirectional=True)
        self.out = nn.Linear(48, self.LETTERS)

    def forward(self, sound: Tensor) -> Tensor:
        """The logarithm of each letter's probability, (time, sequence, letter)."""
        spectrum = torch.stft(sound, 64, 16, window=self.window, return_complex=True).abs().pow(2)
        loud = torch.log(torch.clamp(spectrum.transpose(1, 2) @ self.scale, min=1e-5)).transpose(1, 2)
        features = self.convolutions(loud).transpose(1, 2)
        return self.out(self.recurrent(features)[0]).log_softmax(-1).transpose(0, 1)


def speech_loss(model: nn.Module, sound: Tensor, letters: Tensor) -> Tensor:
    """The CTC loss of the recognised letters."""
    log_probabilities = model(sound).float()
    input_lengths = torch.full((len(sound),), len(log_probabilities))
    letter_lengths = torch.full((len(sound),), letters.shape[1])
    return F.ctc_loss(log_probabilities, letters, input_lengths, letter_lengths, zero_infinity=True)


def recognized_letters(model: nn.Module, sound: Tensor, _: Tensor) -> list[Tensor]:
    """The most probable letters, repetitions and blanks left out."""
    letters = model(sound).argmax(-1).transpose(0, 1)
    runs = [torch.unique_consecutive(line) for line in letters]
    return [line[line != 0] for line in runs]


def ctc_speech() -> NetworkWorkload:
    """Two sounds of half a thousand samples and their transcripts."""
    inputs = (torch.randn(2, 512), torch.randint(1, Listener.LETTERS, (2, 4)))
    return NetworkWorkload(Listener(), inputs, infer=recognized_letters, loss=speech_loss)


class SelectiveStateSpace(nn.Module):
    """A block with input-dependent decay of its state; the recurrence is a sum of logarithms."""

    def __init__(self, width: int = 16, state: int = 4) -> None:
        super().__init__()
        self.into = nn.Linear(width, 2 * width)
        self.convolution = nn.Conv1d(width, width, 4, padding=3, groups=width)
        self.selection = nn.Linear(width, 2 * state + 1)
        self.decay = nn.Parameter(torch.log(torch.arange(1, state + 1).float()).expand(width, state).clone())
        self.skip = nn.Parameter(torch.ones(width))
        self.out = nn.Linear(width, width)
        self.norm = nn.RMSNorm(width)

    def forward(self, tokens: Tensor) -> Tensor:
        """The output for tokens of (sequence, time, width)."""
        length = tokens.shape[1]
        signal, gate = self.into(self.norm(tokens)).chunk(2, -1)
        signal = F.silu(self.convolution(signal.transpose(1, 2))[..., :length].transpose(1, 2))
        step, read_in, read_out = (
            self.selection(signal).float().split([1, self.decay.shape[1], self.decay.shape[1]], -1)
        )
        kept = F.softplus(step).unsqueeze(-1) * -torch.exp(self.decay)
        taken = F.softplus(step).unsqueeze(-1) * signal.unsqueeze(-1) * read_in.unsqueeze(2)
        since = torch.cumsum(kept, 1)
        state = torch.exp(since) * torch.cumsum(taken * torch.exp(-since).clamp(max=1e4), 1)
        answer = torch.einsum("btws,bts->btw", state, read_out) + self.skip * signal
        return tokens + self.out(answer.to(gate.dtype) * F.silu(gate))


def state_space() -> NetworkWorkload:
    """Two blocks over sequences."""
    layers = nn.Sequential(
        *(nn.Embedding(50, 16), SelectiveStateSpace(), SelectiveStateSpace(), nn.LayerNorm(16)),
        *(nn.Linear(16, CLASSES), nn.Flatten(0, 1)),
    )
    tokens = torch.randint(0, 50, (2, 12))
    return NetworkWorkload(
        layers,
        (tokens, torch.randint(0, CLASSES, (24,))),
        infer=lambda model, tokens, _: model(tokens),
        loss=lambda model, tokens, classes: F.cross_entropy(model(tokens), classes),
    )
