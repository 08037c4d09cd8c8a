"""A lock on an open file, against a second writer; it ends with the file's descriptor."""

from __future__ import annotations

import os
import sys

if sys.platform == "win32":  # pragma: no cover - one platform a run
    import msvcrt

    _FAR = 0x7FFF0000
    """A byte that no log reaches, since a locked one can be neither read nor written by others."""

    def try_lock(descriptor: int) -> bool:
        """Whether the file is now locked by this descriptor; False where another has it."""
        at = os.lseek(descriptor, 0, os.SEEK_CUR)
        os.lseek(descriptor, _FAR, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        finally:
            os.lseek(descriptor, at, os.SEEK_SET)
        return True

else:
    import fcntl

    def try_lock(descriptor: int) -> bool:
        """Whether the file is now locked by this descriptor; False where another has it.

        It is the descriptor that owns the lock, so a second one in the same process is refused
        too, and closing a reader's does not end it. OSError where the file system has no locks.
        """
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
