"""Samplers as source code: a mechanism in other languages, with the law that its matrix has."""
