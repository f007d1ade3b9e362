from pmlopt.model.constraints import *
