"""Texts in many scripts and fonts, drawn once as grey bitmaps of one height."""

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from training.sizes import DIGITS, PHRASE, SIGNATURE, TEXT_HEIGHT, TEXT_WIDTH

MIN_SYMBOLS = 200  # of a font that is one of symbols

LATIN = [
    "SAMPLE",
    "PREVIEW",
    "DRAFT",
    "CONFIDENTIAL",
    "COPY",
    "DO NOT COPY",
    "Watermark",
    "watermark",
    "PROOF",
    "Proof Only",
    "Stock Photo",
    "stock",
    "Demo",
    "Not for sale",
    "For review",
    "Photo by {n}",
    "© {n}",
    "© {y} {n}",
    "(c) {n} Photography",
    "{n} Photography",
    "{n} Studio",
    "{n} Images",
    "{n}.com",
    "www.{n}.com",
    "www.{n}.net",
    "@{n}",
    "@{n}_art",
    "{n} & Sons",
    "All rights reserved",
    "Property of {n}",
    "ID {d}",
    "No. {d}",
    "{d}",
    "{d} / {y}",
    "TRIAL VERSION",
    "Evaluation copy",
    "UNLICENSED",
    "Internal use only",
    "Top secret",
    "Mock-up",
    "Real Estate {n}",
    "{n}\n{y}",
    "{n}\nPhotography",
    "Property of\n{n}",
    "DO NOT\nCOPY",
    "© {n}\nAll rights reserved",
    "{n}\nwww.{n}.com",
    "A",
    "Q",
    "W",
    "8",
    "&",
    "XY",
    "{n} {n}",
    "Vorschau",
    "Entwurf",
    "Échantillon",
    "Muestra",
    "Próbka",
    "VZOREK",
    "Ömrék",
    "Größe {d}",
    "{y}/{m:02}/{t:02}",
    "{m:02}.{t:02}.{y}",
    "{y}-{m:02}-{t:02} {t:02}:{m:02}",
    "Shot on {n} {m}",
    "SHOT BY {n}\nQUAD CAMERA",
]
HAN = [
    "样本",
    "仅供预览",
    "版权所有",
    "禁止转载",
    "机密",
    "内部资料",
    "请勿外传",
    "测试水印",
    "水印",
    "图片来自网络",
    "摄影：王小明",
    "微博@{h}",
    "公众号：{h}",
    "{h}摄影",
    "{h}工作室",
    "版權所有",
    "翻印必究",
    "草稿",
    "绝密文件",
    "试用版",
    "仅供内部使用\n请勿外传",
    "{h}\n摄影",
    "样图\n禁止商用",
    "{h}图库",
    "淘宝店：{h}",
    "小红书{d}",
    "抖音号 {d}",
    "資料請勿複製",
    "仅限办理业务使用",
    "复印无效",
    "@{h}",
]
HAN_NAMES = [
    "山海",
    "小满",
    "风信子",
    "青石",
    "云上",
    "拾光",
    "白鹿",
    "老街",
    "木棉",
    "星河",
    "阿宁",
    "北方的风",
    "见南山",
    "半夏",
    "长安",
]
OTHERS = [
    "サンプル",
    "見本",
    "複製禁止",
    "無断転載禁止",
    "社外秘",
    "写真素材",
    "내부용",
    "샘플",
    "복사 금지",
    "사진",
    "저작권 보호",
    "ОБРАЗЕЦ",
    "Черновик",
    "Фото Иванов",
    "копия",
    "секретно",
    "ΔΕΙΓΜΑ",
    "πρόχειρο",
    "Φωτογραφία",
    "नमूना",
    "गोपनीय",
    "प्रतिलिपि",
    "ตัวอย่าง",
    "ห้ามคัดลอก",
    "ລາວ ຕົວຢ່າງ",
    "ສະບັບ",
    "ಮಾದರಿ",
    "నమూనా",
    "മാതൃക",
    "നമൂന",
    "নমুনা",
    "ამბავი",
    "Նմուշ",
    "ምሳሌ",
    "គំរូ",
    "ឯកសារ",
]


@dataclass(frozen=True)
class Face:
    path: Path
    index: int
    covers: frozenset[int]

    @functools.cached_property
    def symbols(self) -> list[int]:
        """What fonts of symbols keep in the private area."""
        return sorted(code for code in self.covers if 0xE000 <= code < 0xF900)


_SYLLABLES = [
    "ka",
    "lo",
    "mi",
    "ra",
    "ten",
    "vor",
    "sel",
    "in",
    "dra",
    "mon",
    "ber",
    "lin",
    "sto",
    "ne",
    "wa",
    "ri",
    "chan",
    "fel",
    "gus",
    "ha",
    "jo",
    "ki",
    "lu",
    "mar",
    "nor",
    "o",
    "pe",
    "qui",
    "ros",
    "san",
    "tu",
    "ul",
    "ver",
    "wil",
    "xan",
    "yo",
    "zel",
    "ash",
    "brook",
    "dale",
    "field",
    "ford",
    "ham",
    "hill",
    "land",
    "ley",
    "ton",
    "wick",
    "wood",
    "stone",
    "lake",
    "bay",
]
# Lines that only long bitmaps hold.
_LONG = (
    "www.{w}{v}.com | Photo: {n}", "© {y} {n}. All rights reserved", "Copyright {y} {n} Photography",
    "{n} Real Estate - Tel. {p}", "Image ID: {d}   www.{w}.com", "{w}@{v}.com  {p}", "Photo credit: {n} / {k}",
    "{n} News Agency {y}", "For preview only - {n}", "Property of {n}, do not reproduce", "{n} | {k} | {y}",
    "Shot on {n} {m}", "Downloaded from www.{w}{v}.net", "{n} Wedding & Portrait Photography", "#{w} #{v} @{w}_{v}",
    "Licensed to {n} - order {d}", "{y}-{m:02}-{t:02} {t:02}:{m:02}:{t:02}", "Follow @{w}.{v} on {n}",
)  # fmt: skip
_SHORT = (
    "{n}", "{w}", "@{w}", "@{w}.{v}", "@{w}_{m}", "{w}.com", "www.{w}.org", "© {n}", "© {y}", "{n} Photo", "{n} Studio",
    "{n} images", "{n} & {k}", "ID {d}", "{d}", "{y}/{m:02}/{t:02}", "{t:02}.{m:02}.{y}", "{t:02}:{m:02}", "by {n}",
    "Photo: {n}", "Shot by {n}", "{m} MP AI CAMERA", "{w}\n{v}", "{n}\n{y}", "{n}\nphotography",
)  # fmt: skip
LONG_RATIO, LISTED_RATIO = 0.25, 0.25  # of the phrases; the rest are short ones with invented names
_HAN_BEFORE = ("", "", "", "@", "微博 @", "小红书号：", "公众号·", "抖音号 ", "摄影：", "图：", "© ")
_HAN_AFTER = ("", "", "", "摄影", "工作室", "图库", "影像", "旅行", "日记", " 版权所有", "\n禁止转载")


def _word(rng: np.random.Generator, most: int = 3) -> str:
    return "".join(str(rng.choice(_SYLLABLES)) for _ in range(int(rng.integers(1, most + 1))))


def invented_name(rng: np.random.Generator) -> str:
    kind, word = rng.random(), _word(rng)
    if kind < 0.3:
        return f"{word.capitalize()} {_word(rng).capitalize()}"
    if kind < 0.45:
        return f"{chr(65 + int(rng.integers(26)))}. {word.capitalize()}"
    return word.upper() if kind < 0.6 else word.lower() if kind < 0.7 else word.capitalize()


def _invented_han(rng: np.random.Generator, signs: Sequence[int]) -> str:
    name = "".join(chr(int(rng.choice(signs))) for _ in range(int(rng.integers(2, 7))))
    number = str(rng.integers(10, 10**6)) if rng.random() < 0.12 else ""
    return f"{rng.choice(_HAN_BEFORE)}{name}{rng.choice(_HAN_AFTER)}{number}"


def phrases(rng: np.random.Generator, han: Sequence[int] = ()) -> Iterator[str]:
    """Texts as marks carry them; ``han`` are the codes of the signs that Chinese names are made of."""
    while True:
        if len(han) and rng.random() < 0.2:
            yield _invented_han(rng, han)
            continue
        kind = rng.random()
        if kind < LISTED_RATIO:
            source: Sequence[str] = (LATIN, LATIN, HAN, OTHERS)[int(rng.integers(4))]
        else:
            source = _LONG if kind < LISTED_RATIO + LONG_RATIO else _SHORT
        text = str(rng.choice(source)).format(
            n=invented_name(rng), k=invented_name(rng), w=_word(rng), v=_word(rng, 2), h=rng.choice(HAN_NAMES),
            y=rng.integers(1996, 2027), d=rng.integers(10, 10**8), m=rng.integers(1, 13), t=rng.integers(1, 29),
            p=f"{rng.integers(100, 999)} {rng.integers(1000, 9999)}",
        )  # fmt: skip
        change = rng.random()
        yield text.upper() if change < 0.18 else text.lower() if change < 0.25 else text


def draw(face: Face, text: str, rng: np.random.Generator) -> NDArray[np.uint8] | None:
    """The text in a bitmap of TEXT_HEIGHT rows, its ink nearly filling them; None if it does not fit or has no ink."""
    size = 120 if "\n" not in text else 64
    font = ImageFont.truetype(str(face.path), size, index=face.index)
    pen = ImageDraw.Draw(Image.new("L", (1, 1)))
    align, spacing = str(rng.choice(["left", "center", "right"])), int(size * rng.uniform(0.1, 0.5))
    left, top, right, bottom = pen.multiline_textbbox((0, 0), text, font=font, align=align, spacing=spacing)
    if not (0 < right - left < 6000 and 20 < bottom - top < 600):
        return None
    image = Image.new("L", (int(right - left) + 16, int(bottom - top) + 16))
    ImageDraw.Draw(image).multiline_text((8 - left, 8 - top), text, font=font, fill=255, align=align, spacing=spacing)
    scale = TEXT_HEIGHT / image.height
    width = round(image.width * scale)
    if not 16 <= width <= TEXT_WIDTH:
        return None
    bitmap = np.asarray(image.resize((width, TEXT_HEIGHT), Image.Resampling.LANCZOS))
    share = (bitmap > 127).mean()
    # Too little ink is a missing glyph, too much a filled box.
    return bitmap if 0.012 < share < 0.8 else None


# Which of the seven bars (top, upper right, lower right, bottom, lower left, upper left, middle) a digit lights.
_BARS = (0b0111111, 0b0000110, 0b1011011, 0b1001111, 0b1100110, 0b1101101, 0b1111101, 0b0000111, 0b1111111, 0b1101111)


def digits(rng: np.random.Generator) -> NDArray[np.uint8]:
    """A date or a time in the seven bars of a camera's display."""
    two = [f"{rng.integers(0, 60):02}" for _ in range(3)]
    text = str(rng.choice([" ", ".", ":", "'", "-"])).join(two[: int(rng.integers(2, 4))])
    thick, lean = int(rng.integers(5, 13)), rng.uniform(0, 0.2)
    wide, gap, high = int(rng.integers(38, 56)), thick + int(rng.integers(6, 18)), TEXT_HEIGHT - 16
    image = Image.new("L", (sum(wide + gap if c.isdigit() else gap + thick for c in text) + 40, TEXT_HEIGHT))
    pen, x = ImageDraw.Draw(image), 8

    def bar(x0: float, y0: float, x1: float, y1: float) -> None:
        ends = [(x + px + lean * (high - py), 8 + py) for px, py in ((x0, y0), (x1, y1))]
        pen.line(ends, fill=255, width=thick)

    half, edge = high / 2, thick * 0.6
    places = ((edge, 0, wide - edge, 0), (wide, edge, wide, half - edge), (wide, half + edge, wide, high - edge),
              (edge, high, wide - edge, high), (0, half + edge, 0, high - edge), (0, edge, 0, half - edge),
              (edge, half, wide - edge, half))  # fmt: skip
    for sign in text:
        if sign.isdigit():
            for k, place in enumerate(places):
                if _BARS[int(sign)] >> k & 1:
                    bar(*place)
            x += wide + gap
            continue
        for y in {":": (0.3, 0.7), ".": (0.98,), "'": (0.05,)}.get(sign, ()):
            bar(0, y * high, 0, y * high + thick)
        if sign == "-":
            bar(0, half, thick, half)
        x += gap + thick
    return np.asarray(image)[:, :TEXT_WIDTH]


def signature(rng: np.random.Generator) -> NDArray[np.uint8]:
    """A name as a hand signs it: a tall initial, loops that flatten out, and at times a stroke below."""
    letters, high = int(rng.integers(4, 13)), TEXT_HEIGHT * 3
    t = np.linspace(0, letters, letters * 60)
    at = np.floor(t).astype(int).clip(max=letters - 1)
    tall = np.where(rng.random(letters) < 0.28, rng.uniform(0.6, 1.1, letters), rng.uniform(0.12, 0.42, letters))
    tall[0] = rng.uniform(0.8, 1.2)
    tall *= np.linspace(1, rng.uniform(0.3, 1), letters)
    below = np.where(rng.random(letters) < 0.2, rng.uniform(0.2, 0.7, letters), 0)
    turn = 2 * np.pi * t
    loop, pitch = rng.uniform(0.1, 0.55), rng.uniform(0.22, 0.6)
    smooth = np.hanning(31) / np.hanning(31).sum()
    above = np.convolve(np.pad(tall[at], 15, mode="edge"), smooth, "valid")
    under = np.convolve(np.pad(below[at], 15, mode="edge"), smooth, "valid")
    wave = 0.5 - 0.5 * np.cos(turn + rng.uniform(-0.5, 0.5) * np.sin(turn * 0.5))
    y = 0.62 - above * 0.5 * wave + under * 0.4 * np.clip(np.sin(turn * 0.5 + rng.uniform(0, 6)), 0, 1)
    x = t * pitch + loop * np.sin(turn) * (0.3 + above) + rng.uniform(-0.25, 0.35) * (0.62 - y)
    strokes = [np.stack([x, y + rng.uniform(-0.12, 0.12) * t / letters], 1)]
    if rng.random() < 0.4:
        way = np.linspace(0, 1, 80)
        bow = rng.uniform(-0.12, 0.12) * np.sin(np.pi * way) + rng.uniform(-0.1, 0.1) * way
        under_x = x.min() + (x.max() - x.min()) * (rng.uniform(-0.05, 0.3) + rng.uniform(0.6, 1.1) * way)
        strokes.append(np.stack([under_x, rng.uniform(0.75, 0.95) + bow], 1))
    points = np.concatenate(strokes)
    low, size = points.min(0), np.ptp(points, axis=0)
    scale = min((high - 40) / size[1], (3 * TEXT_WIDTH - 60) / size[0])
    image = Image.new("L", (int(size[0] * scale) + 40, high))
    pen, thin, thick = ImageDraw.Draw(image), rng.uniform(2, 6), rng.uniform(4, 13)
    slant = rng.uniform(0, np.pi)
    for stroke in strokes:
        placed = (stroke - low) * scale + 20
        way = np.diff(placed, axis=0)
        pressed = thin + (thick - thin) * np.abs(np.sin(np.arctan2(way[:, 1], way[:, 0]) - slant))
        for (x0, y0), (x1, y1), width in zip(placed[:-1], placed[1:], pressed, strict=True):
            pen.line((x0, y0, x1, y1), fill=255, width=max(1, round(width)))
            radius = width / 2
            pen.ellipse((x1 - radius, y1 - radius, x1 + radius, y1 + radius), fill=255)
    wide = max(16, min(TEXT_WIDTH, round(image.width / 3)))
    return np.asarray(image.resize((wide, TEXT_HEIGHT), Image.Resampling.LANCZOS))


# Shares of the texts.
DIGITS_RATIO, SIGNATURES_RATIO = 0.06, 0.07


def draw_many(
    families: Mapping[str, Sequence[Face]], count: int, rng: np.random.Generator
) -> list[tuple[NDArray[np.uint8], int]]:
    """Bitmaps of ``count`` texts with their kinds; families have the same weight, however many styles they come in."""
    groups = [faces for faces in families.values() if len(faces[0].symbols) < MIN_SYMBOLS]
    han = sorted({code for faces in groups for code in faces[0].covers if 0x4E00 <= code < 0xA000})
    drawn: list[tuple[NDArray[np.uint8], int]] = []
    for text in phrases(rng, han):
        kind = rng.random()
        if kind < DIGITS_RATIO:
            drawn.append((_posterised(digits(rng)), DIGITS))
        elif kind < DIGITS_RATIO + SIGNATURES_RATIO:
            drawn.append((_posterised(signature(rng)), SIGNATURE))
        else:
            bitmap = _drawn(groups, text, rng)
            if bitmap is not None:
                drawn.append((_posterised(bitmap), PHRASE))
        if len(drawn) >= count:
            break
    return drawn


def _drawn(groups: Sequence[Sequence[Face]], text: str, rng: np.random.Generator) -> NDArray[np.uint8] | None:
    need = {ord(c) for c in text} - {10}
    for _ in range(60):
        group = groups[rng.integers(len(groups))]
        face = group[rng.integers(len(group))]
        if need <= face.covers:
            try:
                return draw(face, text, rng)
            except (OSError, ValueError):
                return None
    return None


def _posterised(bitmap: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """17 levels of grey compress to half of 256 and look the same after any resampling."""
    return (np.rint(bitmap / 15.9375) * 15.9375).astype(np.uint8)
