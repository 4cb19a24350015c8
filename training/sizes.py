"""The sizes of the packed bitmaps."""

# Twenty times as long as high: an address line, a credit or a phone number is one text.
TEXT_HEIGHT, TEXT_WIDTH = 80, 1600
EMBLEM_SIDE = 160

# Kinds of texts.
PHRASE, DIGITS, SIGNATURE = range(3)
