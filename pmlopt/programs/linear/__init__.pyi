from .block_interior_point import solve_block_lp as solve_block_lp
from .pair_interior_point import solve_pairs as solve_pairs
