"""`holdfast completion`: the script that teaches a shell our verbs and ids."""

from __future__ import annotations

import click

WHERE = {
    "bash": 'add to ~/.bashrc:  eval "$(holdfast completion bash)"',
    "zsh": 'add to ~/.zshrc:  eval "$(holdfast completion zsh)"',
    "fish": "holdfast completion fish > ~/.config/fish/completions/holdfast.fish",
}


@click.command("completion")
@click.argument("shell", type=click.Choice(list(WHERE)))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the completion script of SHELL. For bash: eval "$(holdfast completion bash)" in ~/.bashrc."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    completion = kind(ctx.find_root().command, {}, "holdfast", "_HOLDFAST_COMPLETE")
    click.echo(f"# {WHERE[shell]}")
    click.echo(completion.source())
