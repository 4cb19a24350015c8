"""What can go wrong when a mark is to be found or taken off."""

from headrace.errors import Invalid, NotFound, Unavailable


class RemovalMissing(Unavailable):
    """Removal needs libraries that are not installed: `pip install 'headrace[removal]'` or `scripts/setup removal`."""

    code = "removal_missing"


class ModelDamaged(Unavailable):
    """A model file is not the one that this release was made with: install Headrace again."""

    code = "model_damaged"


class PictureUnreadable(Invalid):
    """The file is not a picture that can be read."""

    code = "picture_unreadable"


class HintUnusable(Invalid):
    """What was said about the mark does not fit the picture."""

    code = "hint_unusable"


class TargetExists(Invalid):
    """There is a file already where the result should go: name another, or add `--force`."""

    code = "target_exists"


class TargetUnusable(Invalid):
    """The result cannot be written there: name another file."""

    code = "target_unusable"


class DocumentUnreadable(Invalid):
    """The file is not a document that can be read."""

    code = "document_unreadable"


class DocumentEncrypted(Invalid):
    """The document is encrypted: give its password with `--password-file`."""

    code = "document_encrypted"


class DocumentSigned(Invalid):
    """The document is signed, and a change breaks the signature: allow it with `--break-signature`."""

    code = "document_signed"


class CandidateUnknown(Invalid):
    """There is no candidate of that number: see `headrace detect`."""

    code = "candidate_unknown"


class ConverterMissing(Unavailable):
    """Old slides (.ppt) need LibreOffice, which is not installed: install it, or save them as .pptx."""

    code = "converter_missing"


# -- of orders through the API


class RemovalNotFound(NotFound):
    """There is no such removal."""

    code = "removal_not_found"


class MediaUnsupported(Invalid):
    """Marks cannot be taken off files of this kind."""

    code = "media_unsupported"


class OrderInvalid(Invalid):
    """The removal cannot be ordered like this."""

    code = "removal_invalid"
