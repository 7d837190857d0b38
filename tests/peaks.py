"""How much memory a process took at most."""

from __future__ import annotations

import re
from pathlib import Path


def peak_bytes(pid: int) -> int:
    """The largest resident set of process *pid* so far; 0 if it is gone.

    Not the peak that wait4 gives: a child begins with that of the process which started it.
    """
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:
        return 0
    return max([0, *(1024 * int(kb) for kb in re.findall(r"VmHWM:\s*(\d+) kB", status))])
