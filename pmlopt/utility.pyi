from pmlopt.model.utility import *
