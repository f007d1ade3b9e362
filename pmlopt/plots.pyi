from pmlopt.programs.plots import *
