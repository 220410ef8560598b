"""The open packages from which the framework headers are generated, with fixed versions."""

from __future__ import annotations

MLX_METAL = "mlx-metal==0.32.4"
MLX_METAL_PLATFORM = "macosx_14_0_arm64"
METAL_CPP = "metal_cpp/"

NODE_API_VERSION = "0.4.0"
NODE_API_URL = f"https://registry.npmjs.org/@nativescript/macos-node-api/-/macos-node-api-{NODE_API_VERSION}.tgz"
NODE_API_SHA512 = (
    "510995b4175e362115fe0b2c24f7976072276f64626c46f9f5454c0be5558dd3"
    "12a53a489e95f3b3a4281e66801b1fe03ba3fc53a051c038d8619ece42f8b56f"
)
NODE_API_TYPES = "package/types/{framework}.d.ts"
NODE_API_BINARY = "NativeScript.framework/Versions/0.1.0/NativeScript"

ZIGLANG = "ziglang==0.17.0"
