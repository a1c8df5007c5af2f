"""The errors that zipfile raises for an archive that is damaged, cut off or not supported."""

import zipfile
import zlib

# RuntimeError: the archive is encrypted. NotImplementedError: zipfile lacks its compression.
BROKEN_ZIP = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)
