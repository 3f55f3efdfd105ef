"""Run by the engine's interpreter: each argv on stdin through the engine's own parser and checks.

stdin: {"<arm>": [argv …]}; stdout: {"<arm>": {what was understood} or {"error": …}}. Nothing is
loaded: the engine's configuration is made and thrown away.
"""

from __future__ import annotations

import json
import sys

from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.entrypoints.launchers.cli_args import make_arg_parser, validate_parsed_serve_args
from vllm.utils.argparse_utils import FlexibleArgumentParser


def understood(argv: list[str]) -> dict[str, object]:
    """What the engine makes of the options."""
    args = make_arg_parser(FlexibleArgumentParser()).parse_args(argv)
    validate_parsed_serve_args(args)
    config = AsyncEngineArgs.from_cli_args(args).create_engine_config()
    drafting = config.speculative_config
    backend, draft = config.attention_config.backend, drafting and drafting.attention_backend
    return {
        "backend": backend and backend.name,
        "flash_attn_version": config.attention_config.flash_attn_version,
        "draft_backend": draft and draft.name,
        "draft_tokens": drafting and drafting.num_speculative_tokens,
        "draft_quantization": drafting and drafting.quantization,
        "acceptance": drafting and drafting.synthetic_acceptance_rates,
        "kv": str(config.cache_config.cache_dtype),
        "quantization": config.model_config.quantization,
        "load_format": str(config.load_config.load_format),
        "eager": config.model_config.enforce_eager,
    }


def main() -> None:
    """Answer for every arm; one that is refused takes none of the others with it."""
    told: dict[str, object] = {}
    for arm, argv in json.load(sys.stdin).items():
        try:
            told[arm] = understood(argv)
        except SystemExit:
            told[arm] = {"error": "the parser refused it; stderr says why"}
        except (ValueError, TypeError, AssertionError, NotImplementedError) as error:
            told[arm] = {"error": str(error)}
    json.dump(told, sys.stdout)


main()
