"""The exception that this package raises for errors of the job."""


class MasterError(RuntimeError):
    """The master rejected a call, or this process is not able to call it.

    A master that restarts, is stopped for a while or cannot be reached is *not* an error: calls
    wait for it. `code` is the name of the gRPC status ("INVALID_ARGUMENT", ...) if the master
    returned one, else "".
    """

    def __init__(self, message: str, code: str = ""):
        super().__init__(message)
        self.code = code
