"""Files: written whole or not at all, read with the place of what is wrong, and recognised by kind."""
