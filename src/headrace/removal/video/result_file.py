"""The result's file: the picture encoded again, every other track copied packet by packet, and their metadata."""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headrace.removal.errors import ClipUnreadable, TargetUnusable
from headrace.removal.order import Codec, Quality
from headrace.removal.video import encoders
from headrace.removal.video.probing import Facts, opened, reason_of

KINDS = {".mp4": "mp4", ".m4v": "mp4", ".mov": "mov", ".mkv": "mkv", ".webm": "webm"}
_MUXERS = {"mp4": "mp4", "mov": "mov", "mkv": "matroska", "webm": "webm"}
_TAGS = ("color_range", "color_primaries", "color_trc", "colorspace")
_NO_DATA = frozenset(("video", "audio", "subtitle", "attachment"))
_ALL = _NO_DATA | {"data"}
_UNSET_PICTURE_TYPE = 0  # of a frame: the encoder chooses


def container_of(path: str, facts: Facts) -> str:
    return KINDS.get(Path(path).suffix.lower(), facts.format)


class Package:
    """Reads a clip and writes the result beside it, frame by frame; holds no more than a few."""

    def __init__(self, facts: Facts, target: str, *, codec: Codec, quality: Quality, threads: int) -> None:
        self.facts, self.target = facts, target
        self.warnings: list[str] = []
        self.stamps: list[int] = []  # of the frames that were written, in units of the source
        self.bytes = 0  # of the picture
        self._container = container_of(target, facts)
        self.codec, encoder = encoders.codec_for(facts, codec, self._container)
        self._how = (encoder, quality, threads)

    @property
    def written(self) -> int:
        """Frames."""
        return len(self.stamps)

    def write(self, work: Callable[[Any], list[Any]], end: Callable[[], list[Any]]) -> None:
        """``work`` is given each frame, writable and in the working format, and gives those to write now; ``end`` the
        rest. Raises what they raise, ``ClipUnreadable`` and ``TargetUnusable``."""
        import av

        with opened(self.facts.path) as source:
            result, track, others = self._begun(source)
            try:
                self._copy(source, result, track, others, work, end)
            except av.FFmpegError as exc:
                raise TargetUnusable(f"{self.target} could not be written: {reason_of(exc)}") from exc
            finally:
                try:
                    result.close()
                except av.FFmpegError as exc:
                    if self.written:
                        raise TargetUnusable(f"{self.target} could not be finished: {reason_of(exc)}") from exc
        if self.written == 0:
            raise ClipUnreadable(f"{self.facts.path} has no frame that can be decoded.")

    def _begun(self, source: Any) -> tuple[Any, Any, dict[int, Any]]:
        """The result with its head written, its picture's track, and those that are copied.

        Tracks of data that this kind of file cannot hold are known only by trying.
        """
        import av

        for kinds in (_ALL, _NO_DATA):
            result = None
            try:
                result = av.open(self.target, "w", format=_MUXERS[self._container], options=self._muxing())
                picture = source.streams.video[0]
                picture.thread_type = "AUTO"
                encoder, quality, threads = self._how
                track = encoders.make_stream(result, self.facts, encoder, quality, threads)
                self._tag(picture, track)
                others = self._others(source, result, picture, kinds)
                result.metadata.update(source.metadata)
                self._chapters(source, result)
                result.start_encoding()
                return result, track, others
            except (av.FFmpegError, OSError, ValueError) as exc:
                if result is not None:
                    with contextlib.suppress(av.FFmpegError):
                        result.close()
                if kinds is _NO_DATA or not source.streams.data:
                    raise TargetUnusable(f"{self.target} cannot be written: {reason_of(exc)}") from exc
                self.warnings.append("tracks of data could not be kept")
        raise AssertionError("one of the two ways returns or raises")

    def _muxing(self) -> dict[str, str]:
        if self._container not in ("mp4", "mov"):
            return {}
        options = {"movflags": "+faststart"}
        base = self.facts.time_base
        if base.numerator == 1:
            options["video_track_timescale"] = str(base.denominator)
        return options

    def _copy(
        self,
        source: Any,
        result: Any,
        track: Any,
        others: dict[int, Any],
        work: Callable[[Any], list[Any]],
        end: Callable[[], list[Any]],
    ) -> None:
        import av

        picture = source.streams.video[0]
        packets = source.demux()
        while True:
            try:
                packet = next(packets)
            except StopIteration:
                break
            except av.FFmpegError as exc:
                self.warnings.append(f"the file is damaged and ends early: {reason_of(exc)}")
                break
            if packet.stream is picture:
                for frame in self._decoded(packet):
                    self._encode(result, track, work(frame))
            elif packet.stream.index in others and packet.size and packet.dts is not None:
                packet.stream = others[packet.stream.index]
                result.mux(packet)
        self._encode(result, track, end())
        for packet in track.encode(None):
            self._mux(result, packet)

    def _decoded(self, packet: Any) -> list[Any]:
        import av

        try:
            return list(packet.decode())
        except av.FFmpegError:
            note = "some frames are damaged and could not be decoded"
            if note not in self.warnings:
                self.warnings.append(note)
            return []

    def _encode(self, result: Any, track: Any, frames: list[Any]) -> None:
        for frame in frames:
            stamp = frame.pts
            if self.stamps and stamp <= self.stamps[-1]:
                stamp = self.stamps[-1] + 1  # two frames at one moment: encoders refuse them
            frame.pts = stamp
            self.stamps.append(stamp)
            frame.time_base = self.facts.time_base
            frame.pict_type = _UNSET_PICTURE_TYPE
            if frame.format.name != track.codec_context.pix_fmt:
                frame = frame.reformat(format=track.codec_context.pix_fmt)
            for packet in track.encode(frame):
                self._mux(result, packet)

    def _mux(self, result: Any, packet: Any) -> None:
        self.bytes += packet.size
        result.mux(packet)

    def _tag(self, picture: Any, track: Any) -> None:
        """What the file says of its colours, its turning, its language."""
        for tag in _TAGS:
            value = getattr(picture.codec_context, tag)
            if value is not None:
                setattr(track.codec_context, tag, value)
        if picture.sample_aspect_ratio:
            track.codec_context.sample_aspect_ratio = picture.sample_aspect_ratio
        if self.facts.matrix is not None:
            track.set_display_matrix(self.facts.matrix)
        elif self.facts.rotation:
            track.set_display_rotation(self.facts.rotation)
        track.metadata.update({key: value for key, value in picture.metadata.items() if key.lower() != "encoder"})
        track.disposition = picture.disposition

    def _others(self, source: Any, result: Any, picture: Any, kinds: frozenset[str]) -> dict[int, Any]:
        """The tracks that are copied, by their number in the source."""
        import av

        copied = {}
        for stream in source.streams:
            if stream.index == picture.index or stream.type not in kinds:
                continue
            try:
                twin = result.add_stream_from_template(stream)
            except (av.FFmpegError, ValueError, TypeError, NotImplementedError) as exc:
                self.warnings.append(f"a track ({stream.type}) could not be kept: {reason_of(exc)}")
                continue
            twin.metadata.update(stream.metadata)
            twin.disposition = stream.disposition
            copied[stream.index] = twin
        return copied

    def _chapters(self, source: Any, result: Any) -> None:
        found = source.chapters()
        if found:
            result.set_chapters(found)


def writable(frame: Any, facts: Facts) -> Any:
    """A frame that is ours to change, in the working format and of the clip's size."""
    layout = facts.layout
    if frame.format.name != layout.name or (frame.width, frame.height) != (facts.width, facts.height):
        fresh = frame.reformat(width=facts.width, height=facts.height, format=layout.name)
        fresh.pts = frame.pts
        return fresh
    frame.make_writable()  # the decoder predicts from its own
    return frame
