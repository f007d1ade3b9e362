"""Designs with an expected gain or loss: a linear program in the mechanism."""

import lazy_loader

# interior points, which small designs do not need
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
