"""Streams: releases to the same people again and again."""

from pmlopt.programs.streams.stream import Stream as Stream
from pmlopt.programs.streams.stream import linear_caps as linear_caps
from pmlopt.programs.streams.stream import next_release as next_release
from pmlopt.programs.streams.stream import stream_bounds as stream_bounds
from pmlopt.programs.streams.stream import sweep_caps as sweep_caps
