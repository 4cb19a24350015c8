"""Between brightness with two colour differences, as clips store them, and red, green, blue, as the eye sees."""

import numpy as np
from numpy.typing import NDArray

# BT.601 and BT.709 differ by a few levels in strong colours: too little to matter to the eye, and what is computed
# never leaves the clip's own planes.
_RED_COEFFICIENT, _GREEN_U_COEFFICIENT, _GREEN_V_COEFFICIENT, _BLUE_COEFFICIENT = 1.5748, 0.1873, 0.4681, 1.8556


def rgb_of(planes: NDArray[np.uint8], *, full: bool) -> NDArray[np.uint8]:
    """H W 3 of brightness and colours as red, green, blue."""
    bright = planes[..., 0].astype(np.float32)
    blue, red = planes[..., 1].astype(np.float32) - 128, planes[..., 2].astype(np.float32) - 128
    if not full:
        bright, blue, red = (bright - 16) * (255 / 219), blue * (255 / 224), red * (255 / 224)
    picture = np.stack(
        [
            bright + _RED_COEFFICIENT * red,
            bright - _GREEN_U_COEFFICIENT * blue - _GREEN_V_COEFFICIENT * red,
            bright + _BLUE_COEFFICIENT * blue,
        ],
        2,
    )
    levels: NDArray[np.uint8] = np.clip(np.rint(picture), 0, 255).astype(np.uint8)
    return levels


def planes_of(picture: NDArray[np.floating], *, full: bool) -> NDArray[np.float32]:
    """The way back, for any shape that ends in three."""
    red, green, blue = (picture[..., channel].astype(np.float32) for channel in range(3))
    bright = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    colours = [bright, (blue - bright) / _BLUE_COEFFICIENT, (red - bright) / _RED_COEFFICIENT]
    if not full:
        colours = [16 + bright * (219 / 255), colours[1] * (224 / 255), colours[2] * (224 / 255)]
    return np.stack([colours[0], colours[1] + 128, colours[2] + 128], -1).astype(np.float32)
