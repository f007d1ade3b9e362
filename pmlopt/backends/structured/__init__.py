"""Linear programs whose columns lie in bands, by an interior point that uses the structure, or by HiGHS."""
