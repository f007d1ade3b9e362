from pmlopt.releases.estimation import *
