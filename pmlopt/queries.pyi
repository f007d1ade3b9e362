from pmlopt.model.queries import *
