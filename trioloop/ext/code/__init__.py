"""Programs that call tools: a tool that runs Python which the model wrote (extra `code`).

`open_runtime(tools=[run_code()])` gives every agent the tool; it needs `trioloop[code]`.
"""

try:
    from trioloop.ext.code.limits import ProgramLimits
    from trioloop.ext.code.tool import run_code
except ModuleNotFoundError as error:
    if error.name != "pydantic_monty":
        raise
    raise ModuleNotFoundError(
        "programs that call tools need: pip install 'trioloop[code]'", name=error.name
    ) from None

__all__ = ["ProgramLimits", "run_code"]
