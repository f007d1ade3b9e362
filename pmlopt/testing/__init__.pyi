from .conformance import ConformanceError as ConformanceError
from .conformance import check_prior_set as check_prior_set
from .conformance import check_requirement as check_requirement
from .conformance import check_utility as check_utility
from .solved_programs import check_program as check_program
