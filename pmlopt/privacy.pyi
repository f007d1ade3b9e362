from pmlopt.model.privacy import *
