"""What zipfile raises of an archive that is damaged, cut off, or of a kind unknown to it."""

import zipfile
import zlib

# An encrypted archive is a RuntimeError, a compression that is not built in a NotImplementedError.
BROKEN_ZIP = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)
