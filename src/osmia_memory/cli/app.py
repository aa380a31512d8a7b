"""The command line: parses, calls Memory, prints, and turns errors into exit statuses. No logic of its own."""

import sys
from collections.abc import Sequence

import typer

from osmia_memory.cli import asking, demonstrating, editing, extracting, keeping
from osmia_memory.errors import ConfigError, OsmiaMemoryError, TenantError

app = typer.Typer(
    name="osmia-memory",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Episodic memory for coding agents: finished runs in, a short trustworthy block of prior knowledge out.",
)

for module in (extracting, asking, editing, keeping, demonstrating):
    module.register(app)


def main(argv: Sequence[str] | None = None) -> None:
    """Run one command. Exit status: 0 done, 1 nothing could be done, 2 misuse."""
    try:
        app(args=list(argv) if argv is not None else None)
    except (ConfigError, TenantError) as error:
        _fail(error, 2)
    except OsmiaMemoryError as error:
        _fail(error, 1)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has gone; nothing to say to anybody
        raise SystemExit(0) from None
    except KeyboardInterrupt:
        print("interrupted; what was stored so far is kept", file=sys.stderr)
        raise SystemExit(130) from None


def _fail(error: OsmiaMemoryError, status: int) -> None:
    print(f"error: {error}", file=sys.stderr)
    raise SystemExit(status) from None


if __name__ == "__main__":
    main()
