"""The tool that runs programs: what it tells the model, and what a program comes to."""

from collections.abc import Mapping

from trioloop.errors import EventEncodingError
from trioloop.ext.code.bindings import answer_of, as_nested, bind
from trioloop.ext.code.limits import ProgramLimits
from trioloop.ext.code.program import run_program
from trioloop.ext.code.worker import Answer, Ended, Failed, ProgramCall, Raised, Waiting, Worker
from trioloop.messages import ImageBlock, TextBlock
from trioloop.ports import Effects
from trioloop.tools import NestedCall, Tool, ToolContext, ToolOutcome, tool
from trioloop.tools.excerpt import HeadAndTail, prefix
from trioloop.tools.strict import written
from trioloop.tools.tool import ModeChoice

_DESCRIPTION = """\
Run a Python program that calls your other tools, and get what it prints and the value of its last
expression. Use it to make many calls, or to work on results without reading all of them.

Each other tool is an async function of the same name with the same parameters: `await name(...)`.
`asyncio.gather(...)` makes calls side by side. A call that fails or is denied raises. There are no
files, no network and no clock; of Python's library there are asyncio, json, math, re, datetime and
a few more.

Args:
    code: the program; `await` may stand at its top level."""

_VALUE_BYTES_MAX = 1 << 20


def run_code(
    *,
    name: str = "run_code",
    limits: ProgramLimits | None = None,
    effects: Effects = "once",
    mode: ModeChoice | None = None,
    timeout_s: float | None = None,
    result_bytes_max: int | None = None,
) -> Tool:
    """A tool that runs programs which the model writes, in a sandbox, and that call its tools.

    A program has the tools of its step as async functions, the tool itself left out. Its calls
    pass the same policies, limits and modes as any other; the log has them under the call that
    runs the program. A call begins when the program next waits, and gives the tool's value, or
    raises: PermissionError where it was denied, TimeoutError, TypeError for arguments that don't
    fit, else RuntimeError. Images in their results are added to the program's own.

    A program that fails gives an error result with the code `CODE_RUN_FAILED`, what it had printed
    and its traceback; `meta["error"]` names the exception.

    Args:
        name: what the model calls it.
        limits: what a program may use up.
        effects: what its programs may do: `once`, unless all tools that they can call are
            harmless.
        mode: as for `tool`; by default it runs alone.
        timeout_s: seconds that a program may take, calls included.
        result_bytes_max: encoded size of its result; None: the limit of the runtime.

    Raises:
        InvalidInputError: an option is none of those.
    """
    of_program = limits or ProgramLimits()

    async def run(code: str, context: ToolContext) -> ToolOutcome:
        return await _Run(name, of_program, context).run(code)

    run.__doc__ = _DESCRIPTION
    return tool(
        name=name,
        effects=effects,
        mode=mode,
        timeout_s=timeout_s,
        result_bytes_max=result_bytes_max,
    )(run)


class _Run:
    """One program under way."""

    def __init__(self, name: str, limits: ProgramLimits, context: ToolContext) -> None:
        self._context = context
        self._limits = limits
        self._bindings = bind(one for one in context.tools if one.name != name)
        self._printed = HeadAndTail(limits.printed_bytes_max)
        self._images: list[ImageBlock] = []
        self._concludes = False
        self._calls = 0

    async def run(self, code: str) -> ToolOutcome:
        worker = Worker(
            names=self._bindings.keys(),
            limits=self._limits,
            seed=self._context.key,
            printed=lambda text: self._printed.feed(text.encode("utf-8", "backslashreplace")),
        )
        end = await run_program(worker, code, self._answer)
        return self._failed(end) if isinstance(end, Failed) else self._ended(end)

    async def _answer(self, waiting: Waiting) -> Mapping[int, Answer]:
        """Make the calls that the program waits for; what can't be made raises in it."""
        answers: dict[int, Answer] = {}
        asked: dict[int, NestedCall] = {}
        for call in waiting.calls:
            made = self._as_nested(call)
            if isinstance(made, NestedCall):
                asked[call.number] = made
            else:
                answers[call.number] = made
        outcomes = await self._context.call_tools(tuple(asked.values())) if asked else []
        for number, outcome in zip(asked, outcomes, strict=True):
            self._note(outcome)
            answers[number] = answer_of(outcome)
        return answers

    def _as_nested(self, call: ProgramCall) -> NestedCall | Raised:
        self._calls += 1
        if self._calls > self._limits.calls_max:
            return Raised("RuntimeError", f"a program makes {self._limits.calls_max} calls at most")
        return as_nested(call, self._bindings[call.name])

    def _note(self, outcome: ToolOutcome) -> None:
        if not outcome.is_error:
            self._concludes |= outcome.concludes_turn
            self._images.extend(block for block in outcome.content if isinstance(block, ImageBlock))

    def _failed(self, end: Failed) -> ToolOutcome:
        return ToolOutcome(
            content=_told(self._printed.text(), end.text),
            is_error=True,
            code="CODE_RUN_FAILED",
            meta={"error": end.kind},
        )

    def _ended(self, end: Ended) -> ToolOutcome:
        text = "" if end.value is None else _text(end.value)
        return ToolOutcome(
            content=(*_told(self._printed.text(), text), *self._images),
            concludes_turn=self._concludes,
        )


def _told(printed: str, rest: str) -> tuple[TextBlock, ...]:
    """What was printed, then what it came to, as the model is told of them."""
    if printed.strip() and rest:
        return (TextBlock(f"Printed:\n{printed.rstrip()}\n\nResult:\n{rest}"),)
    return (TextBlock(printed.rstrip() or rest or "The program ended and printed nothing."),)


def _text(value: object) -> str:
    """A value as JSON, or as Python shows it where JSON can't hold it."""
    if isinstance(value, str):
        return value
    try:
        return written(value, bytes_max=_VALUE_BYTES_MAX)[0]
    except EventEncodingError:
        return prefix(repr(value), _VALUE_BYTES_MAX)
