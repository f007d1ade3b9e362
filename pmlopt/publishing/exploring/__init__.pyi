from .exploration import CurvePoint as CurvePoint
from .exploration import Exploration as Exploration
from .exploration import ExploredCurve as ExploredCurve
from .exploration import ExploredPart as ExploredPart
from .sources import explore as explore
