"""The sizes of the packed bitmaps."""

TEXT_HEIGHT, TEXT_WIDTH = 112, 896
EMBLEM_SIDE = 160
