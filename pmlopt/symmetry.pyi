from pmlopt.data.symmetry import *
