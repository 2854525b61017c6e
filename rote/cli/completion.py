"""`rote completion`: the scripts by which Tab completes commands, options and their values in a shell."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from .failures import on_rank_0

__all__ = ["completion", "script"]

SHELLS = ("bash", "zsh", "fish")
_VARIABLE = "_ROTE_COMPLETE"  # by which click's scripts ask `rote` for completions
_MARK = "# rote completion"  # at the end of the line that we add to a start-up file, so that it is found again
# zsh must be asked to enable completion, which not every start-up file does.
_ZSH_FIRST = "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }\n"


@dataclass(frozen=True, slots=True)
class _Places:
    """Where a shell finds a completion: a file, and the start-up file that reads it if the shell itself does not."""

    script: Path
    start_up: Path | None


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
@click.argument("shell", type=click.Choice(SHELLS), required=False)
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
    chosen = shell or _usual_shell()
    if show:
        click.echo(script(chosen), nl=False)
    else:
        on_rank_0(partial(_install, chosen))


def script(shell: str) -> str:
    """The script that lets a shell complete `rote`.

    >>> "complete" in script("fish")
    True
    """
    source = get_completion_class(shell)
    if source is None:
        raise click.UsageError(f"{shell} cannot complete; choose from {', '.join(SHELLS)}")
    # The template alone, which reads no command: click's `source` would start a bash to ask for its version.
    made = source(completion, {}, "rote", _VARIABLE)
    text = made.source_template % made.source_vars()
    return _ZSH_FIRST + text if shell == "zsh" else text


def _usual_shell() -> str:
    shell = os.path.basename(os.environ.get("SHELL", ""))
    if shell not in SHELLS:
        raise click.UsageError(f"SHELL names none of {', '.join(SHELLS)}; say which: rote completion install bash")
    return shell


def _places(shell: str) -> _Places:
    """The places of a shell's files, as the environment says."""
    home = Path.home()
    if shell == "fish":
        config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
        return _Places(config / "fish" / "completions" / "rote.fish", None)
    data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    start_up = home / ".bashrc" if shell == "bash" else Path(os.environ.get("ZDOTDIR") or home) / ".zshrc"
    return _Places(data / "rote" / f"completion.{shell}", start_up)


def _install(shell: str) -> None:
    """Write the files that are missing, and say so."""
    places = _places(shell)
    wrote = [*_write(places, script(shell))]
    for path in wrote:
        click.echo(f"wrote {path}")
    if not wrote:
        click.echo(f"{places.script} is there already, and up to date")
    click.echo(f"new shells complete rote; this one after: source {shlex.quote(str(places.script))}")


def _write(places: _Places, text: str) -> Iterator[Path]:
    """Write the script and the line that reads it, and yield the files that had to change."""
    if not places.script.exists() or places.script.read_text("utf-8") != text:
        places.script.parent.mkdir(parents=True, exist_ok=True)
        places.script.write_text(text, "utf-8")
        yield places.script
    if places.start_up is None:
        return
    quoted = shlex.quote(str(places.script))
    line = f"[ ! -f {quoted} ] || . {quoted}  {_MARK}"
    lines = places.start_up.read_text("utf-8").splitlines() if places.start_up.exists() else []
    if [each for each in lines if each.endswith(_MARK)] != [line]:
        kept = [each for each in lines if not each.endswith(_MARK)]
        places.start_up.write_text("".join(f"{each}\n" for each in [*kept, line]), "utf-8")
        yield places.start_up
