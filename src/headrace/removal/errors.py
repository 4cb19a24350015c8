"""What can go wrong when a mark is to be found or taken off."""

from headrace.errors import Invalid, Unavailable


class RemovalMissing(Unavailable):
    """Removal needs libraries that are not installed: those of the extra `removal`."""

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


class ClipUnreadable(Invalid):
    """The file is not a clip that can be read."""

    code = "clip_unreadable"


class EncoderMissing(Unavailable):
    """No encoder for that codec is installed: choose another with `--codec`."""

    code = "encoder_missing"
