"""The commands: `python -m hgrpo.cli.<name>`, and `python -m hgrpo.cli.stage <stage>`."""
