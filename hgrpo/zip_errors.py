"""What zipfile raises if an archive is damaged, cut off, or of a kind it does not know."""

import zipfile
import zlib

# RuntimeError: it is encrypted. NotImplementedError: its compression is not built in.
BROKEN_ZIP = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)
