"""The entry point that torch calls at the end of `import torch`: registers the kernels where the user asked for it."""

import os

VARIABLE = "MPSMITH_AUTOLOAD"


def autoload() -> None:
    """Import `mpsmith.kernels` if MPSMITH_AUTOLOAD is 1; whatever goes wrong there is a warning, never an error.

    Torch stops its own import at an exception, so that none may leave this function.
    """
    if os.environ.get(VARIABLE) != "1":
        return
    try:
        import mpsmith.kernels  # noqa: F401
    except Exception as error:
        import warnings

        warnings.warn(
            f"{VARIABLE}=1, but mpsmith.kernels cannot be imported: {error}. torch works without it.", stacklevel=2
        )
