"""A folder as storage, beside others who write and delete."""

import threading
from pathlib import Path

from headrace.storage.folder import Folder


def test_a_file_is_stored_while_the_last_other_one_of_its_folder_is_deleted(tmp_path: Path) -> None:
    # Deleting takes an empty folder away, just as somebody is about to put the next file there.
    folder = Folder(f"file://{tmp_path}/files")
    failed: list[Exception] = []

    def put_and_delete(number: int) -> None:
        try:
            for count in range(150):
                name = f"media/u_1/{number}-{count}"
                folder.put_bytes(name, b"bytes")
                assert folder.size(name) == 5
                folder.delete(name)
        except Exception as exc:  # noqa: BLE001 - told below
            failed.append(exc)

    threads = [threading.Thread(target=put_and_delete, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
