from .certificate import Status as Status
from .envelope.program import failure_after_processing as failure_after_processing
from .record_leakage.alternating import Alternating as Alternating
from .record_leakage.exact_leakage import BranchAndBound as BranchAndBound
from .tradeoff.builders import binding_priors as binding_priors
from .tradeoff.builders import penalty_program as penalty_program
from .tradeoff.builders import tradeoff_program as tradeoff_program
from .worst_case.program import best_guaranteed_utility as best_guaranteed_utility
