from pmlopt.releases.noise import *
