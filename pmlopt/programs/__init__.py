"""The questions, a folder for each: its builder, its certificate, and a file for each method."""
