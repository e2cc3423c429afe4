"""How the tools end: silently, or with one line for the user and an exit code."""

import sys
from collections.abc import Callable


class Failure(Exception):
    """A message for the user: what is wrong, where, and what to do."""


def end_with(work: Callable[[], None], out: object, stopped: str) -> None:
    """Does the work. Prints its Failure, or what the system refused of a file (`out`, if it names none), and exits with 1; after Ctrl-C
    prints `stopped` and exits with 130."""
    try:
        work()
        return
    except Failure as error:
        message, code = f"error: {error}", 1
    except OSError as error:
        message, code = f"error: {error.filename or out}: {error.strerror}", 1
    except KeyboardInterrupt:
        message, code = stopped, 130
    print(message, file=sys.stderr)
    sys.exit(code)
