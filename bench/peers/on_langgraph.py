"""langgraph: a graph of a model and its `ToolNode`, without a checkpointer."""

from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from pydantic import PrivateAttr

from bench.peers.turns import Answers, Turn, Work, measure


class Prepared(BaseChatModel):
    """A model that answers in-process."""

    _answers: Answers = PrivateAttr()

    def __init__(self, answers: Answers) -> None:
        super().__init__()
        self._answers = answers

    @property
    def _llm_type(self) -> str:
        return "prepared"

    def _generate(self, messages: list[BaseMessage], *_: Any, **settings: Any) -> ChatResult:
        calls = [
            {"name": "noop", "args": {"index": number}, "id": f"call_{number}"}
            for number in self._answers.next_calls()
        ]
        answer = AIMessage(content="" if calls else "done", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=answer)])

    async def _agenerate(self, messages: list[BaseMessage], *_: Any, **settings: Any) -> ChatResult:
        return self._generate(messages)


def prepare(work: Work) -> Turn:
    """A graph with one tool."""
    model = Prepared(Answers(work))

    async def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    noop = StructuredTool.from_function(coroutine=work.noop, name="noop")
    graph = StateGraph(MessagesState)
    graph.add_node("model", ask)
    graph.add_node("tools", ToolNode([noop]))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    agent = graph.compile()
    go = {"messages": [{"role": "user", "content": "go"}]}
    return lambda: agent.ainvoke(go, {"recursion_limit": 2 * work.steps + 1})


if __name__ == "__main__":
    measure(prepare)
