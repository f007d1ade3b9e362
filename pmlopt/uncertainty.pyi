from pmlopt.model.uncertainty import *
