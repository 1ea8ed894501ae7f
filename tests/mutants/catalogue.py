"""All mutants, from the lowest floor up. What is done with them is in `trying`."""

from tests.mutants.mutant import Mutant
from tests.mutants.of_agents import AGENTS
from tests.mutants.of_bodies import BODIES
from tests.mutants.of_calls import CALLS
from tests.mutants.of_chains import CHAINS
from tests.mutants.of_compaction import COMPACTION
from tests.mutants.of_decisions import DECISIONS
from tests.mutants.of_drivers import DRIVERS
from tests.mutants.of_folds import FOLDS
from tests.mutants.of_grammar import GRAMMAR
from tests.mutants.of_homes import HOMES
from tests.mutants.of_hooks import HOOKS
from tests.mutants.of_policies import POLICIES
from tests.mutants.of_pools import POOLS
from tests.mutants.of_readers import READERS
from tests.mutants.of_requests import REQUESTS
from tests.mutants.of_sessions import SESSIONS
from tests.mutants.of_steps import STEPS
from tests.mutants.of_turns import TURNS
from tests.mutants.of_words import WORDS

MUTANTS: tuple[Mutant, ...] = (
    *WORDS,
    *FOLDS,
    *GRAMMAR,
    *READERS,
    *DECISIONS,
    *HOOKS,
    *SESSIONS,
    *REQUESTS,
    *TURNS,
    *STEPS,
    *CHAINS,
    *DRIVERS,
    *AGENTS,
    *POOLS,
    *CALLS,
    *BODIES,
    *HOMES,
    *COMPACTION,
    *POLICIES,
)
