from pmlopt.data.tables import *
