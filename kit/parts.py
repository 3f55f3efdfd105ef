"""A verb with parts: its help tells each part in a whole sentence.

Invariant: no sentence of the list is cut; click itself cuts it to what is left of one line.
"""

from __future__ import annotations

import click


class Parts(click.Group):
    """A group whose list of commands wraps instead of ending in dots."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Each part with the first sentence of its help."""
        parts = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, part.get_short_help_str(limit=1000)) for name, part in parts if part]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
