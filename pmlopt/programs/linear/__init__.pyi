from .block_interior_point import solve_block_lp as solve_block_lp
from .output_generation import generate_outputs as generate_outputs
from .pair_interior_point import solve_pairs as solve_pairs
