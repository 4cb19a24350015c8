"""``headrace detect`` and ``headrace remove``: marks on pictures, clips and documents, on this machine, no server."""

from pathlib import Path
from typing import Annotated

import typer

from headrace.cli import batches, removal_tables
from headrace.cli import removal_options as options
from headrace.cli.bars import watched
from headrace.cli.output import Json, print_json
from headrace.removal import runner
from headrace.removal.media import DOCUMENTS, media_of
from headrace.removal.order import Codec, Order


def detect(
    picture: options.Source,
    mask: options.SaveMask = None,
    least_score: options.LeastScore = 0.5,
    force: options.Force = False,
    threads: options.Threads = 2,
    overlay: options.Overlay = None,
    password_file: options.PasswordFile = None,
    json: Json = False,
) -> None:
    """Detect a watermark in a picture, a clip, a PDF or slides; exits with 1 if none is certain."""
    media = media_of(picture)
    if media in DOCUMENTS and mask is not None:
        raise typer.BadParameter("a mark in a document is an object, not pixels: leave it out", param_hint="--mask")
    order = Order(
        str(picture),
        media=media,
        password=options.read_password(password_file) if media in DOCUMENTS else None,
        least_score=least_score,
        threads=threads,
        force=force,
        found_mask=options.named(mask) if media == "IMAGE" else None,
        overlay=options.named(overlay) if media != "IMAGE" else None,
    )
    with watched(f"looking at {picture}") as on_progress:
        report = runner.carry_out(order, on_progress=on_progress)
    if json:
        print_json(report.as_json())
    else:
        removal_tables.show(report, media)
    if media in DOCUMENTS:
        removal_tables.warn(report, media)
    if not any(each.certain for each in report.candidates) and (media == "IMAGE" or not report.suspects):
        raise typer.Exit(1)


def remove(
    files: options.Sources,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to", "-o", help="Where the result goes, a file or a folder; by default beside it, as NAME.clean.EXT."
        ),
    ] = None,
    least_score: options.LeastScore = 0.5,
    box: Annotated[
        list[str] | None,
        typer.Option(
            help="The mark is in this box alone: LEFT,TOP,WIDTH,HEIGHT in pixels, of a document in points. "
            "Of a clip with @ and when: "
            "20,20,200,60@3-8.5 is from second 3 to 8.5, @75f-200f are frames. Repeatable."
        ),
    ] = None,
    keep: Annotated[list[str] | None, typer.Option(help="Change nothing in this box. Repeatable.")] = None,
    mask: Annotated[
        Path | None, typer.Option(help="A picture of the same size that is white where the mark is.")
    ] = None,
    only: options.Only = None,
    mode: options.ModeOption = options.Mode.AUTO,
    same_mark: Annotated[
        bool, typer.Option("--same-mark", help="All pictures carry the same mark in the same place: learn it from all.")
    ] = False,
    quality: options.QualityOption = options.Quality.STANDARD,
    codec: options.CodecOption = Codec.AUTO,
    preview: options.Preview = False,
    pages: options.Pages = None,
    password_file: options.PasswordFile = None,
    break_signature: options.BreakSignature = False,
    variants: Annotated[
        bool, typer.Option("--variants", help="Write a picture filled in another way, too, as NAME.clean.variant.EXT.")
    ] = False,
    strength: Annotated[
        float, typer.Option(help="How much of the change is made: 0.9 takes off less, 1.1 more.", min=0, max=2)
    ] = 1.0,
    save_mask: options.SaveMask = None,
    compare: Annotated[
        Path | None, typer.Option(help="Write before, mask and after, side by side, to this PNG file.")
    ] = None,
    accept_poor: Annotated[
        bool, typer.Option("--accept-poor", help="Accept a poor result: report it, but exit with 0.")
    ] = False,
    ai_label_reason: Annotated[
        str | None,
        typer.Option(metavar="REASON", help="The lawful reason to take off a label that says that AI made the file."),
    ] = None,
    force: options.Force = False,
    threads: options.Threads = 2,
    json: Json = False,
) -> None:
    """Take the watermark off files that are yours; exits with 1 if one is left as it is, 8 if one needs a look."""
    order = Order(
        "",
        mode="MANUAL" if mode is options.Mode.MANUAL else "AUTO",
        quality="HIGH" if quality is options.Quality.HIGH else "STANDARD",
        hints=options.hints(box, keep),
        mask=None if mask is None else str(mask),
        candidates=tuple(only or ()),
        pages=options.page_ranges(pages),
        password=options.read_password(password_file),
        break_signature=break_signature,
        accept_poor=accept_poor,
        ai_label_reason=options.label_reason(ai_label_reason),
        least_score=least_score,
        strength=strength,
        codec=codec,
        threads=threads,
        force=force,
        found_mask=options.named(save_mask),
        comparison=options.named(compare),
        variant="" if variants else None,  # each file's is named beside its result
    )
    if variants and not all(media_of(each) == "IMAGE" for each in files if not each.is_dir()):
        raise typer.BadParameter("only pictures are filled in two ways", param_hint="--variants")
    if mode is options.Mode.MANUAL and not (only or box or mask):
        raise typer.BadParameter("mode manual needs a marked region: add --only, --box or --mask", param_hint="--mode")
    place = None if to is None else options.no_stream(to)
    if options.has_time(order) and not all(media_of(each) == "VIDEO" for each in files):
        raise typer.BadParameter("only clips have a time: leave out what follows @", param_hint="--box")
    if len(files) > 1 or files[0].is_dir() or media_of(files[0]) != "IMAGE":
        for option, target in {"--save-mask": save_mask, "--compare": compare}.items():
            if target is not None:
                raise typer.BadParameter("it is one file: give one picture at a time", param_hint=option)
    batches.remove(
        batches.items_of(files, place),
        order,
        preview=preview and compare is None,
        same_mark=same_mark,
        accept_poor=accept_poor,
        json=json,
    )
