"""Fetches the files of ``benchmarks.strangers`` from public repositories: PDFs, slides, and broken files of all kinds.

    python -m benchmarks.strangers_files --to FOLDER [--mirrors FOLDER]

They go to FOLDER/pdf, FOLDER/slides and FOLDER/bad, by repository, and stay out of this one. ``--mirrors`` names a
folder of git directories (OWNER+NAME/repo) to read instead of the public addresses.
"""

import argparse
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from training.repositories import repository

_PICTURES = (".jpg", ".png", ".tif", ".tiff", ".gif", ".webp", ".bmp", ".dds", ".j2k", ".jp2", ".psd", ".icns", ".pcx")
_SLIDES = (".pptx", ".ppsx", ".potx", ".pptm", ".ppt", ".pps")


class Source(NamedTuple):
    kind: str
    name: str
    commit: str
    under: str
    endings: tuple[str, ...]


SOURCES = (
    Source("pdf", "mozilla/pdf.js", "0f26334f9d6f96119f6e5164fb65832fbbde7344", "test/pdfs/", (".pdf",)),
    Source("pdf", "openpreserve/format-corpus", "9f263890680a8818cc622569b4a16298d08f0ead", "", (".pdf",)),
    Source("pdf", "qpdf/qpdf", "dfd251125cadb59fe04836f9197c3ef94f99cf55", "qpdf/qtest/qpdf/", (".pdf",)),
    Source("pdf", "MatthiasValvekens/pyHanko", "7db4e6fe97552416944c2be98cdeb918c98d4891", "", (".pdf",)),
    Source("pdf", "py-pdf/pypdf", "f6853ccd3ff492309c84060186aabc88ed472ffd", "", (".pdf",)),
    Source("pdf", "ocrmypdf/OCRmyPDF", "62b42095eca831faaa3c84ddb699674788c4c1b7", "", (".pdf",)),
    Source("pdf", "apache/pdfbox", "89a917394c762257017c27e0cf5189605776aa57", "", (".pdf",)),
    Source("pdf", "jsvine/pdfplumber", "147f2c4c07dc1191fc1d05bb589b4f6af3aaf74a", "", (".pdf",)),
    Source("pdf", "pikepdf/pikepdf", "96ab3e100cd941c46993aca4c3e852833b7f2bc5", "", (".pdf",)),
    Source("pdf", "py-pdf/sample-files", "6921079eb3e1ed0944db5ec75016910d59da7fdb", "", (".pdf",)),
    Source("slides", "apache/poi", "a528d43590b3f71aa94310de881a35af887fdd0f", "test-data/", _SLIDES),
    Source("slides", "scanny/python-pptx", "278b47b1dedd5b46ee84c286e77cdfb0bf4594be", "", _SLIDES),
    Source("slides", "openpreserve/format-corpus", "9f263890680a8818cc622569b4a16298d08f0ead", "", _SLIDES),
    Source("bad", "strongcourage/fuzzing-corpus", "d5aaf2c8654592f65e8792d12800317200446e7c", "",
           (*_PICTURES, ".mp4", ".mkv", ".ogv", ".h264", ".pdf")),
    Source("bad", "python-pillow/Pillow", "4e5f09f533dbd0d87d39951f48b62f4d1a421cba", "Tests/images/", _PICTURES),
)  # fmt: skip


def fetch(to: Path, mirrors: Path | None) -> int:
    """Writes what is not there yet; how many files there are now."""
    count = 0
    for source in SOURCES:
        folder = to / source.kind / source.name.partition("/")[2]
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as scratch:
            git = ["git", "-C", str(repository(source.name, Path(scratch), mirrors)), "-c", "core.quotepath=off"]
            listed = subprocess.run(
                [*git, "ls-tree", "-r", "--name-only", source.commit, source.under or "."],
                check=True, capture_output=True, text=True,
            ).stdout.splitlines()  # fmt: skip
            for path in listed:
                if not path.lower().endswith(source.endings):
                    continue
                target = folder / path.replace("/", "__")[-120:]
                if not target.exists():
                    # A mirror may lack the largest ones.
                    shown = subprocess.run([*git, "show", f"{source.commit}:{path}"], capture_output=True)
                    if shown.returncode != 0:
                        continue
                    target.write_bytes(shown.stdout)
                count += 1
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=Path, required=True)
    parser.add_argument("--mirrors", type=Path)
    args = parser.parse_args()
    print(f"{fetch(args.to, args.mirrors)} files in {args.to}")


if __name__ == "__main__":
    main()
