"""The command line: parses, calls Memory, prints, and turns errors into exit statuses. No logic of its own."""

import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from osmia_memory.errors import ConfigError, InputError, OsmiaMemoryError, TenantError

# Which module holds a command. A call imports the module of its command alone: a query is not to pay for the reading of transcripts.
COMMANDS = {
    "extract": "extracting",
    **dict.fromkeys(("query", "list", "show", "explain", "related", "stats", "feedback"), "asking"),
    **dict.fromkeys(("retract", "restore", "edit", "pin", "unpin", "undo", "changes", "forget"), "editing"),
    **dict.fromkeys(("import", "import-outcomes", "export", "decay", "verify", "doctor", "redact"), "keeping"),
    "reconcile": "reconciling",
    "demo": "demonstrating",
    "cassettes": "cassettes",
}


class Commands(TyperGroup):
    """Runs a command. Here, because Typer has statuses of its own for a reader that has gone and for Ctrl-C."""

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        """What the command returns; its output is flushed, so that no error is left for the interpreter's exit."""
        try:
            try:
                return super().invoke(ctx)
            finally:
                sys.stdout.flush()
        except BrokenPipeError:
            # the reader of our output has gone; nothing to say to anybody, and nothing to flush at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise SystemExit(0) from None
        except KeyboardInterrupt:
            print("interrupted; what was stored so far is kept", file=sys.stderr)
            raise SystemExit(130) from None


def _say_version(asked: bool) -> None:
    if asked:
        from importlib import metadata  # 20 ms that a query should not pay

        print(f"osmia-memory {metadata.version('osmia-memory')}")
        raise typer.Exit


def application(command: str | None = None) -> typer.Typer:
    """The command line with all commands, or with the module of one alone."""
    app = typer.Typer(
        name="osmia-memory",
        cls=Commands,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        help="Episodic memory for coding agents: finished runs in, a short trustworthy block of prior knowledge out.",
    )
    app.callback()(_nothing)  # so that a single command is still called by its name
    for name in [COMMANDS[command]] if command in COMMANDS else dict.fromkeys(COMMANDS.values()):
        importlib.import_module(f"osmia_memory.cli.{name}").register(app)
    return app


def _nothing(
    version: Annotated[bool, typer.Option("--version", is_eager=True, callback=_say_version, help="Print the version and exit.")] = False,
) -> None:
    pass


def main(argv: Sequence[str] | None = None) -> None:
    """Run one command. Exit status: 0 done, 1 nothing could be done, 2 misuse."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # whatever the locale: JSON is UTF-8, and a lone surrogate in it is an escape
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        application(arguments[0] if arguments else None)(args=arguments)
    except (ConfigError, TenantError) as error:
        _fail(error, 2)
    except OsmiaMemoryError as error:
        _fail(error, 1)
    except OSError as error:  # a full disk, an impossible path
        _fail(error, 1)
    except RecursionError:
        _fail(InputError("the input is nested too deeply to be read"), 1)


def _fail(error: Exception, status: int) -> None:
    print(f"error: {error}", file=sys.stderr)
    raise SystemExit(status) from None


if __name__ == "__main__":
    main()
