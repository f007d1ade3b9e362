from pmlopt.model.closed_forms import *
