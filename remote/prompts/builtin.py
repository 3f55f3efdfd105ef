"""Prompts of our own, for runs that bring none: a grid of tasks and subjects.

Invariant: the list never changes once released; a new text is a new list.
"""

from __future__ import annotations

from collections.abc import Sequence

_TASKS = (
    "Write a short encyclopedia article about {}.",
    "Explain {} to a curious twelve-year-old, with one everyday example.",
    "List ten facts about {}, one sentence each, numbered.",
    "Write a dialogue in which two friends disagree about {} and part in peace.",
    "Describe the history of {} in five paragraphs.",
    "Write a news report, dated in spring, about a surprising discovery concerning {}.",
    "Compare what people believed about {} two centuries ago with what is known today.",
    "Write clear instructions for someone who must give a lesson on {} tomorrow morning.",
)
_SUBJECTS = (
    "coral reefs",
    "the steam engine",
    "bread and its leavening",
    "lighthouses",
    "the migration of swallows",
    "paper making",
    "volcanoes under the sea",
    "the game of chess",
    "tides and the moon",
    "railway timetables",
    "honey bees",
    "the invention of zero",
    "glass blowing",
    "old maps and their errors",
    "mountain weather",
    "the bicycle",
)


def builtin_prompts() -> Sequence[str]:
    """All of them, 128, in a fixed order."""
    return [task.format(subject) for task in _TASKS for subject in _SUBJECTS]
