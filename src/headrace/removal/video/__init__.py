"""Marks on clips: found over many frames, taken off the decoder's planes, and the rest of the file kept."""
