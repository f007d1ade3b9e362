"""Streams: releases to the same people again and again."""

from pmlopt.programs.streams.stream import (
    Stream,
    linear_caps,
    next_release,
    stream_bounds,
    sweep_caps,
)

__all__ = ["Stream", "linear_caps", "next_release", "stream_bounds", "sweep_caps"]
