"""Events to model-visible nodes and messages."""


class History: ...
