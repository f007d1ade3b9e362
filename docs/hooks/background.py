"""What runs in processes of its own while the pages of the site are set: tutorials, and pages to explore."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

POOL = ThreadPoolExecutor(os.cpu_count() or 1)
"""Each thread waits for a process."""
