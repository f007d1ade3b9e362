"""The leakage that no post-processing exceeds but with a given probability."""
