"""Records: classes whose fields define file format, reading, writing and equality."""
