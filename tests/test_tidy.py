"""The rules of CONTRIBUTING.md that no linter checks. Each exception stands here with a reason."""

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "trioloop"

LINES_MAX = 400
FUNCTION_LINES_MAX = 60
BANNED_NAMES = {"utils", "util", "helpers", "helper", "manager", "misc", "common"}
ONE_IMPORTER = {
    "httpx": "trioloop/models/transport.py",
    "trio_websocket": "trioloop/control/connection.py",
    "pydantic_monty": "trioloop/ext/code/worker.py",
    "sqlite3": "trioloop/store/",
    "click": "trioloop/cli/",
    "rich": "trioloop/cli/",
}
BASE_DEPENDENCIES = ["attrs", "docstring_parser", "httpx", "msgspec", "outcome", "trio"]
FLOORS_WITHOUT_TRIO = [
    "errors.py",
    "ids.py",
    "limits.py",
    "messages.py",
    "chunks.py",
    "events/*.py",
    "codec.py",
    "log/*.py",
    "machine/*.py",
    "stream/*.py",
    "schema/*.py",
]

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Named: TypeAlias = ast.ClassDef | Function


class Module(NamedTuple):
    """A Python file of the repository, read once."""

    path: str
    source: str
    tree: ast.Module

    @property
    def lines(self) -> int:
        """How many lines it has."""
        return self.source.count("\n")

    @property
    def imports(self) -> set[str]:
        """The full names of the modules that it imports, wherever it does."""
        found: set[str] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                found.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module)
        return found

    @property
    def packages(self) -> set[str]:
        """The top-level packages that it imports."""
        return {name.partition(".")[0] for name in self.imports}


def _read(folder: str) -> list[Module]:
    return [
        Module(path.relative_to(ROOT).as_posix(), source, ast.parse(source))
        for path in sorted((ROOT / folder).rglob("*.py"))
        for source in [path.read_text(encoding="utf-8")]
    ]


OURS = _read("trioloop")
OTHERS = ("tests", "bench", "examples", "docs", ".ci")
PLUGINS = [
    module
    for module in OURS
    if module.path.startswith("trioloop/plugins/") and not module.path.endswith("__init__.py")
]
ALL = OURS + [module for folder in OTHERS for module in _read(folder)]


# Size and names


def test_no_file_has_more_than_400_lines() -> None:
    assert [module.path for module in ALL if module.lines > LINES_MAX] == []


def test_no_function_has_more_than_60_lines_beside_its_docstring() -> None:
    assert [
        f"{module.path}:{node.lineno} {node.name}"
        for module in ALL
        for node in ast.walk(module.tree)
        if isinstance(node, Function) and _lines_beside_docstring(node) > FUNCTION_LINES_MAX
    ] == []


def _lines_beside_docstring(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    docstring = node.body[0] if ast.get_docstring(node) is not None else None
    told = 0 if docstring is None else (docstring.end_lineno or 0) - docstring.lineno + 1
    return (node.end_lineno or node.lineno) - node.lineno + 1 - told


def test_files_are_named_after_what_they_do() -> None:
    assert [
        module.path
        for module in ALL
        if BANNED_NAMES.intersection(Path(module.path).with_suffix("").parts)
    ] == []


# Imports


def test_asyncio_is_imported_nowhere() -> None:
    assert [module.path for module in ALL if "asyncio" in module.packages] == []


def test_each_wrapped_library_has_one_importer() -> None:
    assert [
        f"{module.path} imports {package}, which is for {importer}"
        for module in OURS
        for package, importer in ONE_IMPORTER.items()
        if package in module.packages and not module.path.startswith(importer)
    ] == []


def test_no_room_imports_through_the_public_front() -> None:
    """A room that imports `trioloop` itself stands above every floor that the front names."""
    users = ("trioloop/plugins/", "trioloop/cli/", "trioloop/testing")
    assert [
        module.path
        for module in OURS
        if "trioloop" in module.imports and not module.path.startswith(users)
    ] == []


def test_plugins_are_made_with_public_names_alone() -> None:
    """They use what `trioloop` and `trioloop.hooks` list, and names of each other."""
    public = {
        name: set(importlib.import_module(name).__all__) for name in ("trioloop", "trioloop.hooks")
    }
    assert [
        f"{module.path}:{node.lineno} imports {alias.name} from {node.module}"
        for module in PLUGINS
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "trioloop"
        for alias in node.names
        if not (node.module or "").startswith("trioloop.plugins")
        and alias.name not in public.get(node.module or "", ())
    ] == []


def test_plugins_touch_nothing_that_is_private_elsewhere() -> None:
    assert [
        f"{module.path}:{node.lineno} uses {ast.unparse(node)}"
        for module in PLUGINS
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.endswith("__")
        and ast.unparse(node.value) != "self"
    ] == []


def _run_python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_words_and_pure_logic_import_without_trio() -> None:
    """The package's own `__init__` is left out: it names the whole public API, trio's part too."""
    names = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for pattern in FLOORS_WITHOUT_TRIO
        for path in sorted(PACKAGE.glob(pattern))
    ]
    _run_python(f"""
import importlib, sys, types
sys.modules["trioloop"] = package = types.ModuleType("trioloop")
package.__path__ = [{str(PACKAGE)!r}]
for name in {names!r}:
    importlib.import_module(name)
    assert "trio" not in sys.modules, f"{{name}} imports trio"
""")


def _packages_loaded_by(names: list[str]) -> set[str]:
    printed = _run_python(f"""
import sys
for name in {names!r}:
    __import__(name)
print(*{{name.partition(".")[0] for name in sys.modules}} - set(sys.stdlib_module_names))
""")
    return set(printed.split())


def test_importing_trioloop_loads_nothing_beyond_its_base_dependencies() -> None:
    extra = _packages_loaded_by(["trioloop"]) - _packages_loaded_by(BASE_DEPENDENCIES)
    assert extra == {"trioloop"}


# Docstrings


def test_every_module_says_what_it_is() -> None:
    assert [module.path for module in ALL if not ast.get_docstring(module.tree)] == []


def _public(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, Named]]:
    for node in body:
        if isinstance(node, Named) and not node.name.startswith("_"):
            yield f"{prefix}{node.name}", node
            if isinstance(node, ast.ClassDef):
                yield from _public(node.body, f"{prefix}{node.name}.")


METHODS_OF_PROTOCOLS = {
    method.name
    for module in OURS
    for protocol in ast.walk(module.tree)
    if isinstance(protocol, ast.ClassDef)
    and any(ast.unparse(base).startswith("Protocol") for base in protocol.bases)
    for method in protocol.body
    if isinstance(method, Function) and ast.get_docstring(method)
}


def _documented(node: Named) -> bool:
    """Overloads and setters share their function's docstring, methods that of a protocol's."""
    decorators = {ast.unparse(decorator).rpartition(".")[2] for decorator in node.decorator_list}
    return (
        ast.get_docstring(node) is not None
        or not decorators.isdisjoint({"overload", "setter"})
        or node.name in METHODS_OF_PROTOCOLS
    )


def test_every_public_name_has_a_docstring() -> None:
    assert [
        f"{module.path}:{node.lineno} {name}"
        for module in OURS
        for name, node in _public(module.tree.body)
        if not _documented(node)
    ] == []
