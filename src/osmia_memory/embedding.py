"""A static word embedding that ships in a wheel: texts -> unit vectors, offline, without a model server.

Reads the files of the package `wordllama` (32,000 tokens x 256) without importing it: its import takes as long as a whole query, because
of an HTTP client that is never used here, and configures the root logger.
"""

import json
import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_WEIGHTS = Path("weights") / "l2_supercat_256.safetensors"
_TOKENIZER = Path("tokenizers") / "l2_supercat_tokenizer_config.json"


@lru_cache(maxsize=1)
def load() -> Callable[[Sequence[str]], Any] | None:
    """A function from n texts to an n x 256 array of unit vectors (zeros for a text without a known token).

    None where the package or its files are missing: then words alone have to do. numpy is imported here, not with this module.
    """
    spec = find_spec("wordllama")
    folder = Path(spec.origin).parent if spec is not None and spec.origin else None
    if folder is None or not (folder / _WEIGHTS).is_file() or not (folder / _TOKENIZER).is_file():
        return None
    import numpy as np
    from tokenizers import Tokenizer

    table = _table(folder / _WEIGHTS)
    tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER))

    def embed(texts: Sequence[str]) -> Any:
        vectors = np.zeros((len(texts), table.shape[1]), np.float32)
        whole = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]  # the tokenizer refuses lone surrogates
        for row, encoded in enumerate(tokenizer.encode_batch(whole, add_special_tokens=False)):
            if encoded.ids:
                mean = table[encoded.ids].mean(axis=0, dtype=np.float32)
                vectors[row] = mean / max(float(np.linalg.norm(mean)), 1e-9)
        return vectors

    return embed


def _table(path: Path) -> Any:
    """The one tensor of a safetensors file, mapped rather than read: a query touches a few hundred of its rows."""
    import numpy as np

    with path.open("rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
    (tensor,) = (value for name, value in header.items() if name != "__metadata__")
    kind = {"F16": np.float16, "F32": np.float32}[tensor["dtype"]]
    return np.memmap(path, dtype=kind, mode="r", offset=8 + size + tensor["data_offsets"][0], shape=tuple(tensor["shape"]))
