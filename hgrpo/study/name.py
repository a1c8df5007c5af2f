"""What a name in a study may be."""

from typing import Annotated

from pydantic import Field

# Names are used as folders of the results and as words in commands.
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
Name = Annotated[str, Field(pattern=NAME)]
