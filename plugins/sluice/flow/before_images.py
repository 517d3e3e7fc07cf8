"""What was before a publication: a publication in; a file of its before-images, as it stored them, out."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, Final

from sluice.errors import ArtifactCorrupt, NotUndoable
from sluice.flow.damage import note
from sluice.guard.temporary_files import temporary_file
from sluice.model.artifact import ArtifactKind
from sluice.model.base import PublicationId, RunId
from sluice.model.ledger import Publication
from sluice.model.spec import SyncSpec
from sluice.ports import Services

_MEND: Final = "run the sync in mode full instead: what the supplier has now is then reviewed and published"


def undone_publication(services: Services, spec: SyncSpec, publication: PublicationId) -> Publication:
    """Return the publication of this sync that is to be taken back; raise `NotUndoable` if it has none of that id."""
    found = services.ledger(spec).publication(publication)
    if found is None or found.sync != spec.sync:
        of = f": it is one of {found.sync}" if found else ""
        raise NotUndoable(f"{spec.sync} has no publication {publication}{of}; `sluice publications` lists them")
    return found


@contextmanager
def before_images(services: Services, publication: Publication) -> Iterator[BinaryIO]:
    """Yield a file of the rows of target and ledger that a publication overwrote.

    Raises `NotUndoable` if they are not kept any more.
    """
    pointers = services.pointers.of(RunId(publication.run), ArtifactKind.UNDO)
    pointer = next((pointer for pointer in pointers if pointer.key == publication.undo_key), None)
    if pointer is None:
        raise NotUndoable(f"what was before publication {publication.id} is not kept any more; {_MEND}")
    with temporary_file() as file:
        try:
            services.artifacts.get_file(pointer, file)
        except ArtifactCorrupt as error:
            note(services, pointer, error)
            raise NotUndoable(
                f"what was before publication {publication.id} is lost: {error.message}. Put the object back from a backup of "
                f"the bucket, or {_MEND}"
            ) from error
        yield file
