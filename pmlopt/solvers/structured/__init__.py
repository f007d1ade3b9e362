"""Linear programs in blocks of columns, by an interior point that uses the structure, or by HiGHS."""
