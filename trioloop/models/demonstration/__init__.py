"""The embedded demonstration model: rules that read tool declarations and questions.

From the outside in: `model` streams what `deciding` decides; that reads the `conversation`, makes
a plan (`planning`, with `filling` for the arguments) and words the rest (`answering`). A question
becomes tokens in `question`, a declaration words and forms in `declaration`, and tokens become
arguments in `values`. Only `model` knows trio.
"""

from trioloop.models.demonstration.model import DemonstrationModel

__all__ = ["DemonstrationModel"]
