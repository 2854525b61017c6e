"""`rote completion`: the scripts by which Tab completes commands, options and their values in a shell."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

from .output import on_rank_0

__all__ = ["completion", "script"]

SHELLS: dict[str, type[ShellComplete]] = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}
_VARIABLE = "_ROTE_COMPLETE"  # by which click's scripts ask `rote` for completions
_MARK = "# rote completion"  # at the end of the line that we add to a start-up file, so that it is found again
# Not every start-up file of zsh enables completion.
_ZSH_FIRST = "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }\n"


@click.group()
def completion() -> None:
    """Install Tab completion of commands, options, methods, dtypes, kinds and files for bash, zsh and fish.

    \b
    Examples:
      rote completion install
      rote completion install zsh
      rote completion install bash --show
    """


@completion.command()
@click.argument("shell", type=click.Choice(tuple(SHELLS)), required=False)
@click.option("--show", is_flag=True, help="Print the script, and write nothing.")
def install(shell: str | None, show: bool) -> None:
    """Install completion for a shell: its script, and for bash and zsh a line in their start-up file.

    The default is the shell of the variable SHELL. Existing files keep their contents.

    \b
    Examples:
      rote completion install
      rote completion install fish
      rote completion install bash --show
    """
    chosen = shell or os.path.basename(os.environ.get("SHELL", ""))
    if chosen not in SHELLS:
        raise click.UsageError(f"SHELL names none of {', '.join(SHELLS)}; say which: rote completion install bash")

    if show:
        click.echo(script(chosen), nl=False)
    else:
        on_rank_0(_install, chosen)


def script(shell: str) -> str:
    """The script that lets a shell complete `rote`.

    >>> "complete" in script("fish")
    True
    """
    # The template alone, which reads no command: click's `source` would start a bash to ask for its version.
    made = SHELLS[shell](completion, {}, "rote", _VARIABLE)
    text = made.source_template % made.source_vars()
    return _ZSH_FIRST + text if shell == "zsh" else text


def _install(shell: str) -> None:
    """Write the script, and for bash and zsh the line that reads it, where they are missing, and say so."""
    home, env = Path.home(), os.environ
    if shell == "fish":
        path = Path(env.get("XDG_CONFIG_HOME") or home / ".config") / "fish" / "completions" / "rote.fish"
    else:
        path = Path(env.get("XDG_DATA_HOME") or home / ".local" / "share") / "rote" / f"completion.{shell}"

    quoted, texts = shlex.quote(str(path)), {path: script(shell)}

    if shell != "fish":  # which reads the script by itself
        start_up = home / ".bashrc" if shell == "bash" else Path(env.get("ZDOTDIR") or home) / ".zshrc"

        lines = _text(start_up).splitlines()
        source_line = f"[ ! -f {quoted} ] || . {quoted}  {_MARK}"

        # The line of an earlier place, or of several, is replaced by the one of today.
        if [line for line in lines if line.endswith(_MARK)] != [source_line]:
            others = [line for line in lines if not line.endswith(_MARK)]
            texts[start_up] = "".join(f"{line}\n" for line in [*others, source_line])

    changed = [file for file, text in texts.items() if _text(file) != text]
    for file in changed:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(texts[file], "utf-8")
        click.echo(f"wrote {file}")

    if not changed:
        click.echo(f"{path} is there already, and up to date")
    click.echo(f"new shells complete rote; this one after: source {quoted}")


def _text(file: Path) -> str:
    return file.read_text("utf-8") if file.exists() else ""
