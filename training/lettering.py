"""Texts in many scripts and fonts, drawn once as grey bitmaps of one height."""

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from fontTools.ttLib import TTCollection, TTFont
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from training.sizes import TEXT_HEIGHT, TEXT_WIDTH

# Families that the benchmark draws with, or that look the same: they never enter training.
HELD_OUT = ("rubik", "aileron", "microhei", "wqy", "droidsansfallback", "dejavu", "lato", "liberation")

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
NAMES = [
    "Anna Berg",
    "Miller",
    "lumen",
    "Northwind",
    "pixelhaus",
    "Ivo Marsh",
    "J. Ortega",
    "Vera",
    "blue kite",
    "FOTOWERK",
    "Sato",
    "K. Novak",
    "mira",
    "Old Mill",
    "Fennimore",
    "Quartz",
    "dvx",
    "Halo",
    "Tundra",
    "EASTGATE",
    "Rowan",
    "Zephyr",
    "Ondine",
    "Kestrel",
    "abc",
    "Umbra",
    "rkive",
    "Lindqvist",
    "Joy",
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


def find_faces(folders: Sequence[Path]) -> list[Face]:
    """Every face under the folders but the held-out ones; broken files are passed over."""
    faces = []
    for path in sorted({p for folder in folders for p in folder.rglob("*") if p.suffix in (".ttf", ".otf", ".ttc")}):
        if any(word in str(path).lower().replace("-", "") for word in HELD_OUT):
            continue
        try:
            fonts = TTCollection(path, lazy=True).fonts if path.suffix == ".ttc" else [TTFont(path, lazy=True)]
            # One face of a collection is enough: the others differ in a few glyphs.
            faces.append(Face(path, 0, frozenset(fonts[0].getBestCmap() or ())))
        except Exception:  # noqa: BLE001 - a bitmap font, a broken table: there are hundreds of others
            continue
    return faces


def phrases(rng: np.random.Generator) -> Iterator[str]:
    while True:
        kind = rng.random()
        source = LATIN if kind < 0.6 else HAN if kind < 0.8 else OTHERS
        text = str(rng.choice(source)).format(
            n=rng.choice(NAMES), h=rng.choice(HAN_NAMES), y=rng.integers(1998, 2027), d=rng.integers(10, 10**7),
            m=rng.integers(1, 13), t=rng.integers(1, 29)
        )  # fmt: skip
        change = rng.random()
        yield text.upper() if change < 0.18 else text.lower() if change < 0.25 else text


def draw(face: Face, text: str, rng: np.random.Generator) -> NDArray[np.uint8] | None:
    """The text in a bitmap of TEXT_HEIGHT rows, its ink nearly filling them; None if it does not fit or has no ink."""
    size = 150 if "\n" not in text else 80
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
    return bitmap if 0.02 < share < 0.8 else None


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


DIGITS = 0.07  # of the texts


def draw_many(faces: Sequence[Face], count: int, rng: np.random.Generator) -> list[NDArray[np.uint8]]:
    """Bitmaps of ``count`` texts; families have the same weight, however many styles they come in."""
    families: dict[Path, list[Face]] = {}
    for face in faces:
        families.setdefault(face.path.parent, []).append(face)
    groups, bitmaps = list(families.values()), []
    for text in phrases(rng):
        if rng.random() < DIGITS:
            bitmaps.append((np.rint(digits(rng) / 15.9375) * 15.9375).astype(np.uint8))
        need = {ord(c) for c in text} - {10}
        for _ in range(40):
            group = groups[rng.integers(len(groups))]
            face = group[rng.integers(len(group))]
            if need <= face.covers:
                break
        else:
            continue
        try:
            bitmap = draw(face, text, rng)
        except (OSError, ValueError):
            continue
        if bitmap is not None:
            # 17 levels of grey compress to half of 256 and look the same after any resampling.
            bitmaps.append((np.rint(bitmap / 15.9375) * 15.9375).astype(np.uint8))
        if len(bitmaps) >= count:
            break
    return bitmaps[:count]
