"""The limits of detection in documents and clips, and of every verdict on a result, in one place.

``report.of_confidence`` turns a confidence into a verdict; the checks of written files hold their figures against the
ratios.
"""

# How likely a result is good. Below the first a person should look at it, below the second it is not handed out unless
# the order accepts poor results: docs/why/eye-model-card.md has the errors of both.
MIN_CLEAN_CONFIDENCE, MIN_CONFIDENCE = 0.65, 0.4

# Of the mark's outline, from which on one still sees the mark; and of all edges along it, the picture's among them.
MAX_OUTLINE_RATIO, MAX_RESIDUE_RATIO = 0.35, 0.95
MAX_SEEN_RATIO = 0.12  # of the mark's pixels on flat ground
# What is the same in the margin of most pages of a document has this score: a person may call it a mark, and nothing is
# asked about it.
MAX_FURNITURE_SCORE = 0.15
MIN_DETAIL_RATIO = 0.5  # of wide filled places in clips: with less, the place is a blur that one sees
# How likely something in a document or a clip is a mark: AUTO acts from the first score on; less than the second is not
# worth a person's look.
MIN_AUTO_SCORE = 0.7
MIN_LISTED_DOCUMENT_SCORE, MIN_LISTED_CLIP_SCORE = 0.45, 0.5
MIN_UNTOUCHED_DB = 38.0  # outside the mark, of formats that lose something
