"""`holdfast answer`: answer what a turn waits for, from anywhere, exactly once."""

from __future__ import annotations

import click

from holdfast.cli.context import Cli, pass_cli, shared_options
from holdfast.cli.errors import USAGE, CliError
from holdfast.cli.screen import clean, one_line
from holdfast.cli.values import TEXT


@click.command("answer")
@click.argument("id")
@click.argument("text", type=TEXT, required=False)
@click.option("--allow", "choice", flag_value="allow", help="Allow this one call, once.")
@click.option("--call", "choice", flag_value="call", help="Allow this very call as often as it comes in this session.")
@click.option("--session", "choice", flag_value="session", help="Allow what its rule stands for, in this session.")
@click.option("--always", "choice", flag_value="always", help="The same, by writing the rule into the profile.")
@click.option("--deny", "choice", flag_value="deny", help="Do not allow it; TEXT tells the agent why.")
@shared_options
@pass_cli
def command(cli: Cli, id: str, text: str | None, choice: str | None) -> None:
    """Answer the wait ID: a question with TEXT (or the number of a choice), an approval with a flag.

    `holdfast inbox ID` shows what an approval is about: every argument of the call, and the rule that --session and
    --always allow. A context that is too long and has no summary takes `try again` or `digest`, or their number.

    Two people may answer at once; the second one is told who was first.
    """
    if text is None and choice is None:
        raise CliError(
            "An answer is missing.",
            hint="Give a TEXT, or --allow, --call, --session, --always, --deny; `holdfast inbox ID` shows all of it.",
            code=USAGE,
        )
    cli.start_gateway()
    body = {"wait": id.strip().lower(), "answer": choice or text, "note": text or "" if choice else ""}
    rule = cli.client.get(f"/v1/inbox/{body['wait']}")["wait"]["pattern"] if choice in ("session", "always") else ""
    accepted = cli.client.command("POST", "/v1/answers", body)
    warning = str(accepted.get("warning", ""))
    if cli.json:
        kept = {key: accepted[key] for key in ("session", "version", "seq")}
        cli.print_json(kept | ({"warning": warning} if warning else {}))
    else:
        if rule and not warning:
            click.echo(f"allowed {'in this session' if choice == 'session' else 'in its profile'}: {one_line(rule)}")
        click.echo(f"answered; session {accepted['session']} goes on")
        if warning:
            click.echo(f"warning: {clean(warning)}", err=True)
