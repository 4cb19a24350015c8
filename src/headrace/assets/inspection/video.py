"""MP4, MOV, MKV, WebM: what the tracks are, and whether a picture comes out of them."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from headrace.assets.inspection.boxes import read_layout
from headrace.assets.inspection.errors import (
    FileDamaged,
    FileEncrypted,
    FilePolyglot,
    FileTooLong,
    FileTruncated,
    FileUnsupported,
)
from headrace.assets.inspection.findings import check_memory, check_pixels, facts
from headrace.assets.inspection.matroska import read_segment_end
from headrace.assets.inspection.model import Facts, FileLimits, Format, Note
from headrace.assets.inspection.sniffing import check_hidden
from headrace.assets.inspection.source import Source

_DEMUXER = {Format.MP4: "mov", Format.MOV: "mov", Format.MKV: "matroska", Format.WEBM: "matroska"}
_PROTECTED_TRACK = b"encv"
_MAX_MOOV_BYTES = 256 * 1024**2
# Matroska's numbers of "encoding" and "encryption", near the beginning.
_ENCODING, _ENCRYPTION = b"\x62\x40", b"\x50\x35"
_ATTACHED_PICTURE = 0x0400
# Degrees to the left, as FFmpeg counts them, to EXIF's number.
_ORIENTATIONS = {0: 1, 90: 8, 180: 3, -180: 3, 270: 6, -90: 6, -270: 8}
# What the frames are counted in by reading every packet; in larger files their number is computed.
_COUNTED_BYTES = 64 * 1024**2
_PACKETS_TO_FIRST_FRAME = 300
_MAX_STEPS_READ = 200
_ROUNDED_MS = 500  # by which the packets of an honest file may be longer than its head says


@dataclass(slots=True)
class _Packets:
    """The packets' facts, of all or of the first ones."""

    count: int = 0
    last: int | None = None
    first: int | None = None
    uneven: bool = False
    whole: bool = True


def inspect(source: Source, limits: FileLimits, kind: Format) -> Facts:
    end = _check_layout(source, kind)
    check_hidden(source, end)
    with opened(source, kind) as container:
        stream = _picture_track(container)
        context = stream.codec_context
        check_pixels(context.width, context.height, limits)
        check_memory(context.width, context.height, bytes_per_pixel=12)  # some frames are kept to compute others from
        rotation = _first_frame_rotation(container, stream)
        if rotation is None:
            raise _no_picture(source, kind)
        declared_ms = _declared_ms(container, stream)
        everything = declared_ms is None or source.size <= _COUNTED_BYTES
        packets = _read_packets(source, kind, stream.index, everything=everything)
        duration_ms, measured = declared_ms, _measured_ms(stream, packets) if packets.whole else None
        # What the head says is anybody's to write, and what a file costs goes by it.
        if declared_ms is None or (measured is not None and measured > declared_ms + _ROUNDED_MS):
            duration_ms = measured
        _check_length(duration_ms, limits)
        frames, estimated = _frames(stream, packets, duration_ms)
        return facts(
            kind,
            notes=[Note.BYTES_BEHIND] if end < source.size else [],
            width=context.width,
            height=context.height,
            frames=frames,
            duration_ms=duration_ms,
            orientation=_ORIENTATIONS.get(rotation, 1),
            details={
                "video_codec": context.name,
                "frame_rate": round(float(stream.average_rate), 3) if stream.average_rate else None,
                "variable_frame_rate": packets.uneven,
                "frames_estimated": estimated or None,
                "pixel_format": context.pix_fmt,
                "audio": _codecs(container.streams.audio),
                "subtitles": _codecs(container.streams.subtitles),
            },
        )


@contextmanager
def opened(source: Source, kind: Format) -> Iterator[Any]:
    """The file, opened with the reader of its kind only: some of FFmpeg's readers open further files that a file names.

    All open ones share one position in the file: of two, only the later can continue reading.
    """
    import av

    options = {"fd": str(source.descriptor), "protocol_whitelist": "fd"}
    source.rewind()
    try:
        container = av.open("fd:", format=_DEMUXER[kind], options=options, metadata_errors="replace")
    except av.FFmpegError as exc:
        raise FileDamaged from exc
    with container:
        for stream in container.streams.video:
            if stream.codec_context is not None:
                stream.codec_context.thread_count = 1  # each thread holds frames of its own
        yield container


def _check_layout(source: Source, kind: Format) -> int:
    """Where the video ends in the file; ``FileTruncated`` if that is behind the file's end."""
    if kind in (Format.MKV, Format.WEBM):
        return read_segment_end(source)
    layout = read_layout(source)
    if sum(box.kind == b"ftyp" for box in layout.boxes) > 1:
        raise FilePolyglot("Two files lie in this one, one behind the other: send each by itself.")
    for box in layout.boxes:
        if (
            box.kind == b"moov"
            and box.size <= _MAX_MOOV_BYTES
            and _PROTECTED_TRACK in source.read_at(box.offset, box.size)
        ):
            raise _protected()
    if not layout.has(b"moov"):
        raise FileTruncated(
            "The list of what the video holds is missing, as when a recording or a copy was broken off: send it again "
            "from where it is whole."
        )
    return layout.end


def _picture_track(container: Any) -> Any:
    streams = [each for each in container.streams.video if not int(each.disposition) & _ATTACHED_PICTURE]
    if not streams:
        raise FileUnsupported("There is no picture in this video, only sound or text: send one with a picture.")
    stream = streams[0]
    if stream.codec_context is None:
        raise FileUnsupported("The video is packed in a way that is not known here: save it as H.264 and send that.")
    return stream


def _protected() -> FileEncrypted:
    return FileEncrypted("The video is protected against copying: send one that is not.")


def _no_picture(source: Source, kind: Format) -> Exception:
    if kind in (Format.MKV, Format.WEBM):
        tracks = source.read_at(0, 65_536)
        if _ENCODING in tracks and _ENCRYPTION in tracks:
            return _protected()
    return FileDamaged("No picture comes out of the video: play it, save it again with a usual program and send that.")


def _first_frame_rotation(container: Any, stream: Any) -> int | None:
    """Decode until one frame comes; how far it is turned. None if none comes."""
    import av

    tries = 0
    for packet in container.demux(stream):
        tries += 1
        if tries > _PACKETS_TO_FIRST_FRAME:
            break
        try:
            for frame in packet.decode():
                return int(frame.rotation)
        except av.FFmpegError:
            continue  # some recordings begin in the midst of a group of pictures
    return None


def _read_packets(source: Source, kind: Format, index: int, *, everything: bool) -> _Packets:
    import av

    packets = _Packets(whole=everything)
    times: list[int] = []
    with opened(source, kind) as container:
        stream = container.streams[index]
        try:
            for packet in container.demux(stream):
                if packet.size == 0:
                    continue
                packets.count += 1
                if packet.pts is not None and not packet.is_discard:
                    end = packet.pts + (packet.duration or 0)
                    packets.last = end if packets.last is None else max(packets.last, end)
                    packets.first = packet.pts if packets.first is None else min(packets.first, packet.pts)
                    if len(times) < _MAX_STEPS_READ:
                        times.append(packet.pts)
                if not everything and packets.count >= _MAX_STEPS_READ:
                    break
        except av.FFmpegError as exc:
            raise FileDamaged from exc
    packets.uneven = _is_uneven(sorted(times))
    return packets


def _is_uneven(times: list[int]) -> bool:
    """Whether the steps from frame to frame differ by more than rounding to the track's clock explains."""
    steps = sorted(later - earlier for earlier, later in itertools.pairwise(times))
    if len(steps) < 4:
        return False
    # A few steps at the beginning and end are odd in many files: use the middle ones.
    low, high = steps[len(steps) // 20], steps[-1 - len(steps) // 20]
    return bool(high - low > max(2, high // 10))


def _declared_ms(container: Any, stream: Any) -> int | None:
    if container.duration and container.duration > 0:
        return int(container.duration // 1000)
    if stream.duration and stream.duration > 0 and stream.time_base:
        return round(float(stream.duration * stream.time_base) * 1000)
    return None


def _measured_ms(stream: Any, packets: _Packets) -> int | None:
    """By its packets: a browser's recording has no duration, since it is not written at its end."""
    if packets.last is None or packets.first is None or not stream.time_base:
        return None
    return round(float((packets.last - packets.first) * stream.time_base) * 1000)


def _check_length(duration_ms: int | None, limits: FileLimits) -> None:
    if duration_ms is None:
        raise FileUnsupported(
            "The video does not say how long it is: save it again with a usual program and send that."
        )
    if limits.max_seconds is not None and duration_ms > limits.max_seconds * 1000:
        raise FileTooLong(
            f"The video lasts {duration_ms // 1000:,} s, more than are allowed ({limits.max_seconds:,}): send it in "
            "parts, or choose a larger plan.",
            seconds=duration_ms // 1000,
            max_seconds=limits.max_seconds,
        )


def _frames(stream: Any, packets: _Packets, duration_ms: int | None) -> tuple[int, bool]:
    if packets.whole:
        return packets.count, False
    if stream.frames:
        return int(stream.frames), False
    rate = float(stream.average_rate or 0)
    return max(packets.count, round(rate * (duration_ms or 0) / 1000)), True


def _codecs(streams: Any) -> list[str]:
    return [each.codec_context.name if each.codec_context is not None else "unknown" for each in streams][:32]
