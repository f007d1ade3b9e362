"""How much a given mechanism leaks and how useful it is: numpy only, everything in nats."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
