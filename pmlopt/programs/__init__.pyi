from .certificate import Status as Status
from .envelope.program import failure_after_processing as failure_after_processing
from .record_leakage.alternating import Alternating as Alternating
from .record_leakage.exact_leakage import BranchAndBound as BranchAndBound
from .worst_case.program import best_guaranteed_utility as best_guaranteed_utility
