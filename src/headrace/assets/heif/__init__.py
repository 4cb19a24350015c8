"""HEIF files (HEIC) read by FFmpeg: their items, their pixels, their notes."""
