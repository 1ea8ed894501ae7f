"""What tests of agents need: a runtime without surprises, scripted models, sweeps of what may fail.

For users' tests and ours. A test runtime is strict, its identifiers are seeded, its clock is
Trio's, and when it is left every log in it is checked. A sweep runs a scenario again and again and
lets one thing happen at every place where it may: a cancel, an exception, a failing commit.
"""

from trioloop.models.scripted import (
    Answer,
    Fail,
    Reasoning,
    Refusal,
    ScriptedModel,
    Stall,
    Text,
    ToolCall,
    Wait,
)
from trioloop.testing.conformance import STORE_PROMISES, StorePromise, store_conformance
from trioloop.testing.runtime import check_session, open_test_runtime, seeded_ids
from trioloop.testing.stores import FaultyStore, StoreFault
from trioloop.testing.sweeps import (
    CallPoint,
    CancelPoint,
    cancel_at_every_checkpoint,
    fail_at_every_commit,
    raise_at_every_call,
    stray_cancelled,
)

__all__ = [
    "STORE_PROMISES",
    "Answer",
    "CallPoint",
    "CancelPoint",
    "Fail",
    "FaultyStore",
    "Reasoning",
    "Refusal",
    "ScriptedModel",
    "Stall",
    "StoreFault",
    "StorePromise",
    "Text",
    "ToolCall",
    "Wait",
    "cancel_at_every_checkpoint",
    "check_session",
    "fail_at_every_commit",
    "open_test_runtime",
    "raise_at_every_call",
    "seeded_ids",
    "store_conformance",
    "stray_cancelled",
]
