"""The bytes of every request, made before the window from a plan's prompts and sampling."""

from remote.prompts.source import request_source

__all__ = ["request_source"]
