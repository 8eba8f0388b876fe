"""The launcher's one kind of error: a sentence for the person who started it."""

import errno

from turno.launcher.say import _


class LauncherError(Exception):
    """Why the command can't go on, as one sentence in the person's language; it ends with exit code 1."""


def no_space(where: object) -> str:
    """The sentence for a full disk."""
    return _("There is no space left on the disk that holds {where}: free some and start again.").format(where=where)


def no_permission(where: object) -> str:
    """The sentence for a file or folder that this user may not write."""
    return _(
        "This user has no permission for {where}: start Turno as the user who owns the folder, or change its owner."
    ).format(where=where)


def sentence(error: OSError, default: object = "?") -> str:
    """One sentence for an error of the operating system; `default` is the place when the error names none."""
    where = error.filename or default
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return no_space(where)
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return no_permission(where)
    return _("The system refused: {reason} ({where}).").format(reason=error.strerror or error, where=where)
