"""Turn one GGUF file into a model directory the engine loads; run by the engine's Python, alone.

Invariant: the output depends on the GGUF bytes, the transformation and the locked distributions,
on nothing else, so that its digests can stand in a lock. Never imported by the kit: it needs
transformers and torch, which only the engine's environment holds.

Usage: python materialise_gguf.py GGUF_FILE OUTPUT_DIR TRANSFORMATION
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

# transformation -> indices of the decoder layers left out. A model without five late layers still
# agrees with the whole one often enough to serve as its draft (acceptance length about 1.6, n=4).
DROPPED_LAYERS: dict[str, frozenset[int]] = {
    "gguf-to-bf16": frozenset(),
    "gguf-to-bf16-drop-layers-22-26": frozenset(range(22, 27)),
}

# transformation -> the shape of a published Llama. Such a directory has no weights: the engine
# fills them in itself under `--load-format dummy`. For timing at scale, never for text.
# Source: the shapes in "The Llama 3 Herd of Models", table 3, and Llama 3.2's model card. The
# vocabulary is the tokenizer's own.
DUMMY_SHAPES: dict[str, dict[str, int]] = {
    "dummy-llama-1b": {
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "num_hidden_layers": 16,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 64,
    },
    "dummy-llama-8b": {
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
    },
}

# What a config says of the machine or the load, not of the model.
_VOLATILE_KEYS = (
    "_name_or_path",
    "_model_name_or_path",
    "name_or_path",
    "transformers_version",
    "quantization_config",
)


def main(argv: list[str]) -> int:
    """Write the directory; 0, or 2 with a line on stderr when the arguments are wrong."""
    if len(argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    gguf, output, transformation = Path(argv[0]), Path(argv[1]), argv[2]
    if transformation in DROPPED_LAYERS:
        _write_weights(gguf, output, DROPPED_LAYERS[transformation])
    elif transformation in DUMMY_SHAPES:
        _write_dummy(gguf, output, DUMMY_SHAPES[transformation])
    else:
        known = ", ".join(sorted([*DROPPED_LAYERS, *DUMMY_SHAPES]))
        print(f"unknown transformation {transformation!r}; known: {known}", file=sys.stderr)
        return 2
    return 0


def _write_weights(gguf: Path, output: Path, dropped: frozenset[int]) -> None:
    import torch  # type: ignore[import-not-found]
    from safetensors.torch import save_file  # type: ignore[import-not-found]
    from transformers import AutoModelForCausalLM  # type: ignore[import-not-found]

    model = AutoModelForCausalLM.from_pretrained(
        gguf.parent, gguf_file=gguf.name, dtype=torch.float32
    )
    tensors = {}
    for name, tensor in model.state_dict().items():
        kept = _kept_name(name, dropped)
        if kept is not None:
            # float32 first, one rounding to bfloat16 last: the order decides the bytes.
            tensors[kept] = tensor.to(torch.bfloat16).contiguous()
    save_file(tensors, output / "model.safetensors", metadata={"format": "pt"})
    (output / "model.safetensors").chmod(0o644)  # the writer leaves it readable to its owner only
    config = model.config.to_dict()
    config["num_hidden_layers"] -= len(dropped)
    _write_config(output, config)
    _write_tokenizer(gguf, output)


def _kept_name(name: str, dropped: frozenset[int]) -> str | None:
    """The tensor's name among the layers that stay, or None when it does not stay."""
    if name.startswith("lm_head."):  # tied to the embedding; the engine ties it again
        return None
    parts = name.split(".")
    if parts[:2] != ["model", "layers"]:
        return name
    layer = int(parts[2])
    if layer in dropped:
        return None
    parts[2] = str(layer - sum(1 for index in dropped if index < layer))
    return ".".join(parts)


def _write_dummy(gguf: Path, output: Path, shape: dict[str, int]) -> None:
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(gguf.parent, gguf_file=gguf.name).to_dict()
    config.update(shape, max_position_embeddings=131072, tie_word_embeddings=False)
    _write_config(output, config)
    _write_tokenizer(gguf, output)


def _write_config(output: Path, config: dict[str, Any]) -> None:
    for key in _VOLATILE_KEYS:
        config.pop(key, None)
    config["architectures"] = ["LlamaForCausalLM"]
    config["dtype"] = "bfloat16"
    _write_json(output / "config.json", config)
    # Only the token ids: a sampling default here would become the server's (vLLM reads this file
    # with --generation-config auto), and greedy would no longer be greedy.
    kept = ("bos_token_id", "eos_token_id", "pad_token_id")
    _write_json(
        output / "generation_config.json",
        {key: config[key] for key in kept if config.get(key) is not None},
    )


def _write_tokenizer(gguf: Path, output: Path) -> None:
    from transformers import AutoTokenizer

    AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name).save_pretrained(output)


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
