"""Loading `--tools FILE.py`: functions made tools by `@tool`, or a module-level list `tools`."""

import importlib.util
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from trioloop.cli.exits import CommandError
from trioloop.errors import TrioloopError
from trioloop.tools import Tool, tool


def load_tools(path: Path) -> list[Tool]:
    """The tools of a file. The file's own folder is importable while it runs, and afterwards.

    Raises:
        CommandError: it can't be read, raises, or has no tools.
    """
    module = _executed(path)
    listed = getattr(module, "tools", None)
    tools = _listed(path, listed) if isinstance(listed, list | tuple) else list(_declared(module))
    if not tools:
        raise CommandError(
            f"{path} has no tools: decorate functions with @trioloop.tool, or set "
            "tools = [...] in it"
        )
    return tools


def _executed(path: Path) -> ModuleType:
    if not path.is_file():
        raise CommandError(f"the tools file {path} isn't there, or is no file")
    spec = importlib.util.spec_from_file_location(f"trioloop_tools_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise CommandError(f"the tools file {path} is no Python file: its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # the file is a stranger's: even its SystemExit is an error here
        raise CommandError(_what_is_wrong(path, error)) from None
    return module


def _what_is_wrong(path: Path, error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return f"{error.filename or path} line {error.lineno}: {error.msg}"
    frames = traceback.extract_tb(error.__traceback__)
    here = path.resolve()
    lines = [frame.lineno for frame in frames if Path(frame.filename).resolve() == here]
    place = f"{path} line {lines[-1]}" if lines else str(path)
    said = str(error) if isinstance(error, TrioloopError) else f"{type(error).__name__}: {error}"
    return f"{place}: {said}"


def _listed(path: Path, listed: list[object] | tuple[object, ...]) -> list[Tool]:
    tools = []
    for one in listed:
        if isinstance(one, Tool):
            tools.append(one)
        elif callable(one):
            try:
                tools.append(tool(one))
            except TrioloopError as error:
                raise CommandError(f"{path}: {error}") from None
        else:
            raise CommandError(f"{path}: tools = [...] holds {one!r}, which is no tool or function")
    return tools


def _declared(module: ModuleType) -> Iterator[Tool]:
    seen: set[int] = set()
    for value in vars(module).values():
        if isinstance(value, Tool) and id(value) not in seen:
            seen.add(id(value))
            yield value
