"""Options with which all Parquet files are written and read: every page has a checksum.

Without checksums, a flipped byte in a page of numbers reads as another number.
"""

WRITE = {"compression": "zstd", "write_page_checksum": True}
READ = {"page_checksum_verification": True}
