"""What a program may use up."""

import attrs

from trioloop.limits import count_limit, seconds_limit


@attrs.frozen(kw_only=True)
class ProgramLimits:
    """The limits of one program.

    Attributes:
        run_s: seconds of its own work; waiting for calls doesn't count.
        memory_bytes_max: size of its objects.
        recursion_max: how deep its functions may call each other.
        calls_max: how many calls of tools it may make.
        printed_bytes_max: how much of what it prints is kept, head and tail.

    Raises:
        InvalidInputError: a value isn't greater than 0.
    """

    run_s: float = seconds_limit(30)
    memory_bytes_max: int = count_limit(256 * 1024 * 1024)
    recursion_max: int = count_limit(1_000)
    calls_max: int = count_limit(1_000)
    printed_bytes_max: int = count_limit(32 * 1024)
