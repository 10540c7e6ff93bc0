"""What a program writes, kept up to a bound, counted and digested beyond it."""

from __future__ import annotations

import binascii
import os

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing hashlib costs 5 ms, which only a long output pays
    import hashlib

READ_BYTES = 64 * 1024
DRAIN_READS_MAX = 64  # a writer that goes on must not hold up the answer: 4 MiB, more than any pipe holds


class CapturedStream:
    """Reads one pipe without blocking; the pipe is drained for ever, so that its writer never stalls."""

    __slots__ = ("_bytes_max", "_digest", "_head", "_reported", "_total", "descriptor")

    def __init__(self, descriptor: int, bytes_max: int) -> None:
        os.set_blocking(descriptor, False)
        self.descriptor: int | None = descriptor
        self._bytes_max = bytes_max
        self._head = bytearray()
        self._total = 0
        self._reported = False
        self._digest: hashlib._Hash | None = None

    def read(self, reads_max: int = 1) -> None:
        """Take what is there, in at most `reads_max` reads; closes the pipe at its end."""
        for _ in range(reads_max):
            if self.descriptor is None:
                return
            try:
                chunk = os.read(self.descriptor, READ_BYTES)
            except BlockingIOError:
                return
            except OSError:
                chunk = b""
            if not chunk:
                os.close(self.descriptor)
                self.descriptor = None
                return
            if not self._reported:
                self._keep(chunk)

    def report(self) -> dict[str, object]:
        """What was written up to now, as the owner is told it; what comes later is only drained."""
        self._reported = True
        sha256 = None if self._digest is None else self._digest.hexdigest()
        data = binascii.b2a_base64(self._head, newline=False).decode("ascii")
        return {"data": data, "total_bytes": self._total, "sha256": sha256}

    def _keep(self, chunk: bytes) -> None:
        self._total += len(chunk)
        if self._digest is None:
            room = self._bytes_max - len(self._head)
            if len(chunk) <= room:
                self._head += chunk
                return
            import hashlib

            self._digest = hashlib.sha256(self._head)
            self._head += chunk[:room]
        self._digest.update(chunk)
