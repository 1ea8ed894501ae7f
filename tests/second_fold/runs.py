"""All runs whose logs are read twice."""

from tests.second_fold import runs_of_answers, runs_of_calls, runs_of_sessions
from tests.second_fold.recording import Run

RUNS: tuple[Run, ...] = (*runs_of_answers.RUNS, *runs_of_calls.RUNS, *runs_of_sessions.RUNS)
