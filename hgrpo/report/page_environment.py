"""How templates become pages: text is escaped, and a name that is missing is an error."""

import jinja2


def page_environment() -> jinja2.Environment:
    """Jinja's environment for the templates of this package."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader("hgrpo.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
