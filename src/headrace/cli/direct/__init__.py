"""Commands' requests, answered from the database of the settings: as the product itself, and audited."""

from headrace.cli.direct.answering import perform

__all__ = ["perform"]
