"""Marks that another program, FFmpeg, puts over somebody's clip; and where they are in each frame."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from headrace.removal.video.probing import Facts

_FONT = "/usr/share/fonts/truetype/dejavu/DejaVuSans-Bold.ttf"
_LIGHT = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"
_CHINESE = "/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc"
_TEXT = "drawtext=fontfile={font}:text='Studio Nord':fontcolor=white@{alpha}:fontsize=h/14:x={x}:y={y}"
_WORDS = "[base]drawtext=fontfile={font}:text='{text}':fontcolor={colour}:fontsize=h/{size}:x={x}:y={y}"
_LOGO = "[base][1:v]overlay=format=auto:x='{x}':y='{y}'"
_CORNER = {"x": "W-w-W/24", "y": "H-h-H/20"}
# By seconds: every 1.2 s in another corner.
_EVERY = 1.2
_JUMPS = {
    "x": f"if(mod(floor(t/{_EVERY}),2),W/24,W-w-W/24)",
    "y": f"if(mod(floor(t/{_EVERY}/2),2),H/20,H-h-H/20)",
}
_JUMPING_TEXT = {
    "x": f"'if(mod(floor(t/{_EVERY}),2),w/24,w-text_w-w/24)'",
    "y": f"'if(mod(floor(t/{_EVERY}/2),2),h/20,h-text_h-h/20)'",
}
_DRIFTS = {"x": "(W-w)*(0.1+0.8*abs(mod(t/4,2)-1))", "y": "(H-h)*(0.1+0.8*abs(mod(t/6,2)-1))"}
# What is done with the picture, which is called [base].
KINDS = {
    "logo": _LOGO.format(**_CORNER),
    "text": "[base]" + _TEXT.format(font=_FONT, alpha=0.5, x="w/24", y="h-text_h-h/20"),
    "handle": _WORDS.format(font=_FONT, text="@studio.nord", colour="white@0.6", size=18, x="w-text_w-w/30", y="h/24")
    + ":shadowcolor=black@0.4:shadowx=2:shadowy=2",
    "url": _WORDS.format(
        font=_LIGHT, text="www.studio-nord.example", colour="white@0.45", size=16, x="(w-text_w)/2", y="h-text_h-h/16"
    ),
    "centre": _WORDS.format(
        font=_FONT, text="STUDIO NORD", colour="white@0.3", size=8, x="(w-text_w)/2", y="(h-text_h)/2"
    ),
    "black": _WORDS.format(font=_FONT, text="NORD.TV", colour="black@0.5", size=12, x="w/24", y="h/20"),
    "chinese": _WORDS.format(
        font=_CHINESE, text="北方影视频道", colour="white@0.5", size=14, x="w-text_w-w/24", y="h-2*text_h"
    ),
    "jumping": _LOGO.format(**_JUMPS),
    "jumping_text": _WORDS.format(
        font=_FONT, text="@studio.nord", colour="white@0.5", size=14, x=_JUMPING_TEXT["x"], y=_JUMPING_TEXT["y"]
    ),
    "fading": "[base]"
    + _TEXT.format(font=_FONT, alpha=0.6, x="w-text_w-w/24", y="h/20")
    + ":alpha='0.5+0.5*sin(2*PI*t/3)'",
    "moving": _LOGO.format(**_DRIFTS),
    "wide": "[base]"
    + ",".join(
        _TEXT.format(font=_FONT, alpha=0.35, x=f"w*{across}/3+w/40", y=f"h*{down}/5+h/16")
        for down in range(5)
        for across in range(3)
    ),
}  # fmt: skip
ENDINGS = (".mp4", ".mov", ".mkv", ".webm")
_ENCODERS = {
    "hevc": ["libx265", "-crf", "20", "-preset", "ultrafast", "-x265-params", "log-level=error"],
    "vp9": ["libvpx-vp9", "-crf", "24", "-b:v", "0", "-deadline", "realtime", "-cpu-used", "7", "-row-mt", "1"],
    "vp8": ["libvpx", "-crf", "8", "-b:v", "4M", "-deadline", "realtime", "-cpu-used", "7"],
    "av1": ["libsvtav1", "-crf", "24", "-preset", "10"],
    "mpeg4": ["mpeg4", "-q:v", "3"],
}
_H264 = ["libx264", "-crf", "18", "-preset", "veryfast"]


@dataclass(frozen=True)
class Marked:
    clip: Path
    mask: Path  # frames as many, brighter than black where the mark is


def draw_logo(path: Path, height: int) -> None:
    """A word with a disc before it, half transparent."""
    high = max(12, height // 14)
    font = ImageFont.truetype(_FONT, high)
    wide = int(font.getlength("Nord TV")) + 2 * high
    picture = Image.new("RGBA", (wide, int(1.4 * high)), (255, 255, 255, 0))
    pen = ImageDraw.Draw(picture)
    pen.ellipse((0, high // 8, int(1.1 * high), int(1.22 * high)), fill=(255, 255, 255, 128))
    pen.ellipse((high // 3, int(0.45 * high), int(0.77 * high), int(0.9 * high)), fill=(255, 255, 255, 0))
    pen.text((int(1.4 * high), 0), "Nord TV", font=font, fill=(255, 255, 255, 128))
    picture.save(path)


def mark(source: Path, facts: Facts, kind: str, folder: Path) -> Marked:
    """The clip with the mark, every other track copied. Raises ``CalledProcessError`` where FFmpeg cannot."""
    ending = source.suffix if source.suffix.lower() in ENDINGS else ".mkv"
    logo, clip, mask = folder / "logo.png", folder / f"marked{ending}", folder / "mask.mkv"
    draw_logo(logo, facts.height)
    files = ["-noautorotate", "-i", str(source), "-i", str(logo)]
    tags = _tags(facts)
    encoder = _ENCODERS.get(facts.codec, _H264)
    if ending == ".webm" and encoder[0] not in ("libvpx-vp9", "libvpx", "libsvtav1"):
        encoder = _ENCODERS["vp9"]
    over = KINDS[kind]
    _run(*files, "-filter_complex", f"[0:v:0]null[base];{over},format={facts.layout.name}[out]", "-map", "[out]",
         "-map", "0:a?", "-map", "0:s?", "-map_metadata", "0", "-c:a", "copy", "-c:s", "copy", "-c:v", *encoder, *tags,
         "-max_muxing_queue_size", "4096", str(clip))  # fmt: skip
    black = "[0:v:0]format=yuv420p,lutyuv=y=16:u=128:v=128[base]"
    light = over.replace("black@", "white@")  # to be seen there
    _run(*files, "-filter_complex", f"{black};{light},format=yuv420p[out]", "-map", "[out]", "-c:v", "ffv1", str(mask))
    return Marked(clip, mask)


def _tags(facts: Facts) -> list[str]:
    return ["-fps_mode", "passthrough", "-enc_time_base", "-1", "-threads", "2"] + (
        ["-video_track_timescale", str(facts.time_base.denominator)] if facts.format in ("mp4", "mov") else []
    )


def _run(*args: str) -> None:
    command = ["ffmpeg", "-y", "-nostdin", "-v", "error", *args]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
