"""The one exception that this package raises about the job."""


class MasterError(RuntimeError):
    """The master refused a call, or cannot be spoken to at all.

    A master that is restarted, stopped for a while or out of reach is *not* an error: calls wait
    until it is back. `code` is the name of the gRPC status ("INVALID_ARGUMENT", ...) where the
    master gave one, else "".
    """

    def __init__(self, message: str, code: str = ""):
        super().__init__(message)
        self.code = code
