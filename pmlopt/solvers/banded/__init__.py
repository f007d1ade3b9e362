"""Linear designs whose columns lie in bands: solved without cvxpy, by the simplex or an interior point."""

from pmlopt.solvers.banded import direct, structured
from pmlopt.solvers.banded.task import Task, task_of

__all__ = ["Task", "direct", "structured", "task_of"]
