"""Sequential designs: releases of a moving (Markov) secret, each conditional on the earlier ones."""
