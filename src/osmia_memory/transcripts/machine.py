"""What a path says about the machine it is on. Pure."""

import re


def os_of(path: str | None) -> str | None:
    """`macos`, `linux` or `windows` by the shape of an absolute path; None if it does not tell."""
    if not path:
        return None
    if re.match(r"[A-Za-z]:[\\/]", path) or path.startswith("\\\\"):
        return "windows"
    if path.startswith(("/Users/", "/private/", "/Volumes/")):
        return "macos"
    return "linux" if path.startswith(("/home/", "/root", "/workspace", "/testbed", "/mnt/", "/srv/", "/github/", "/app")) else None
