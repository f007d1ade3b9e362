from . import block_interior_point as block_interior_point
from . import pair_interior_point as pair_interior_point
