"""Streams: releases to the same people again and again."""
