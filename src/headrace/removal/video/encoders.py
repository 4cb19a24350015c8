"""Which encoder packs the result, and how.

A browser must play it, and the result should be of the same kind as the source. So the codec is the source's where
browsers play that one and an encoder is installed; else AV1, in WebM VP9. docs/why/removal-videos.md says what
that means for licences.
"""

from fractions import Fraction
from typing import Any

from headrace.removal.errors import EncoderMissing
from headrace.removal.order import Codec, Quality
from headrace.removal.video.probing import Facts

_ENCODERS = {
    Codec.H264: ("libx264", "libopenh264", "h264_videotoolbox"),
    Codec.AV1: ("libsvtav1", "libaom-av1"),
    Codec.VP9: ("libvpx-vp9",),
}
_NAMES = {"h264": Codec.H264, "av1": Codec.AV1, "libdav1d": Codec.AV1, "vp9": Codec.VP9, "vp8": Codec.VP9}
_HELD = {"webm": (Codec.VP9, Codec.AV1), "mov": (Codec.H264,)}  # what kinds of files can hold; others hold all
_DEEP = "yuv420p10le"
_CRF = "16"  # of H.264: visually lossless
# What a second packing loses is made up for by so much more; a source of no compression to speak of is not a measure.
_BIT_RATE_RATIO, _MAX_BITS_A_PIXEL, _MIN_BITS_A_PIXEL = 1.08, 0.6, 0.02


def codec_for(facts: Facts, asked: Codec, container: str) -> tuple[Codec, str]:
    """The codec of the result, and the name of its encoder. Raises ``EncoderMissing``."""
    import av

    def encoder(codec: Codec) -> str | None:
        return next((name for name in _ENCODERS[codec] if name in av.codecs_available and _formats(name)), None)

    held = _HELD.get(container, tuple(_ENCODERS))
    if asked is not Codec.AUTO:
        name = encoder(asked)
        if name is None:
            raise EncoderMissing(f"No encoder for {asked} is installed: choose another with --codec.")
        if asked not in held:
            raise EncoderMissing(f"A result that ends in .{container} holds no {asked}: choose {' or '.join(held)}.")
        return asked, name
    wanted = [_NAMES.get(facts.codec, Codec.AUTO), *_HELD.get(container, (Codec.AV1, Codec.VP9))]
    for codec in wanted:
        name = encoder(codec) if codec in held else None
        # Not every build of libvpx packs ten bits.
        if name is not None and (facts.layout.bits == 8 or _DEEP in _formats(name) or container == "mov"):
            return codec, name
    if container == "mov":
        raise EncoderMissing("MOV holds H.264 alone, and none can be written here: let the result end in .mp4.")
    raise EncoderMissing("Neither AV1 nor VP9 can be written by this build of PyAV.")


def _formats(name: str) -> frozenset[str]:
    """What an encoder takes; nothing where it is not there."""
    import av

    try:
        return frozenset(each.name for each in av.Codec(name, "w").video_formats or ())
    except (av.FFmpegError, ValueError):
        return frozenset()


def target_rate(facts: Facts) -> int:
    """Bits a second: as the source's, and a little more for packing twice."""
    pixels = facts.width * facts.height * float(facts.rate)
    wanted = facts.bit_rate * _BIT_RATE_RATIO
    return int(min(max(wanted, _MIN_BITS_A_PIXEL * pixels), max(_MAX_BITS_A_PIXEL * pixels, 200_000)))


def make_stream(container: Any, facts: Facts, encoder: str, quality: Quality, threads: int) -> Any:
    """The result's picture track, ready to encode."""
    stream = container.add_stream(encoder, rate=facts.rate)
    context = stream.codec_context
    stream.width, stream.height = facts.width, facts.height
    context.pix_fmt = pixel_format(facts, encoder)
    context.time_base = stream.time_base = facts.time_base
    context.framerate = Fraction(facts.rate).limit_denominator(65535)
    context.bit_rate = target_rate(facts)
    context.thread_count = threads
    context.options = _options(encoder, quality, threads, facts)
    return stream


def pixel_format(facts: Facts, encoder: str) -> str:
    """The source's, or the nearest that the encoder takes."""
    formats, name = _formats(encoder), facts.layout.name
    if name in formats:
        return name
    return _DEEP if facts.layout.bits > 8 and _DEEP in formats else "yuv420p"


def _options(encoder: str, quality: Quality, threads: int, facts: Facts) -> dict[str, str]:
    high = quality == "HIGH"
    keys = max(1, round(float(facts.rate) * 5))
    if encoder == "libx264":
        # Aiming at a mean rate spoils the first seconds, which are all of a short clip: the quality is set, and the
        # rate is a ceiling.
        most = target_rate(facts)
        return {
            "preset": "medium" if high else "veryfast", "g": str(keys), "crf": _CRF, "maxrate": str(most),
            "bufsize": str(2 * most),
        }  # fmt: skip
    if encoder == "libsvtav1":
        return {"preset": "6" if high else "9", "g": str(keys), "svtav1-params": f"lp={max(1, threads)}"}
    if encoder == "libvpx-vp9":
        speed = "3" if high else "7"
        return {"deadline": "good" if high else "realtime", "cpu-used": speed, "row-mt": "1", "g": str(keys),
                "auto-alt-ref": "1" if high else "0"}  # fmt: skip
    return {"g": str(keys)}
