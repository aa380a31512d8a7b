"""The exception tree. Every error says what was tried and what to do next.

OsmiaMemoryError
├── InputError               you: bad input; says what to change
│   ├── TranscriptError      a file that no reader can make sense of
│   ├── RowError             an import row that does not fit; names the field
│   ├── ConfigError          an unknown key or a value out of range
│   └── TenantError          a read or write without a tenant
├── WorldError               lock, disk, provider; `retryable` says whether trying again can help
│   ├── StoreError           the store cannot be used
│   │   ├── StoreLockedError     another process holds the file
│   │   ├── StoreCorruptError    the file is not a readable store
│   │   └── StoreVersionError    the file was written by a newer release
│   ├── ProviderError        a model provider gave no reply
│   │   ├── ProviderAuthError         the key is missing, wrong, or not allowed this
│   │   ├── ProviderRequestError      the provider does not take this request
│   │   ├── ProviderRefusedError      the provider's filter refused the content
│   │   └── ProviderUnavailableError  rate limit, server error, timeout, cut connection
│   └── CapReached           the next request to a model may pass a spending cap
└── InternalError            us: a broken invariant
"""

from typing import ClassVar


class OsmiaMemoryError(Exception):
    """Root of everything this package raises on purpose."""


class InputError(OsmiaMemoryError):
    """The input has to change; trying again as it is cannot help."""


class TranscriptError(InputError):
    """No reader recognises the file, or the recognised reader finds no run in it."""


class RowError(InputError):
    """An import row does not have the documented fields."""


class ConfigError(InputError):
    """A configuration key is unknown or its value is out of range."""


class TenantError(InputError):
    """A tenant is missing; a missing one is an error, never a wildcard."""


class WorldError(OsmiaMemoryError):
    """Something outside this process refused."""

    retryable: ClassVar[bool] = False


class StoreError(WorldError):
    """The store cannot be used as it is."""


class StoreLockedError(StoreError):
    """Another process holds the store; waiting was bounded and is over."""

    retryable = True


class StoreCorruptError(StoreError):
    """The file is not a store this package can read."""


class StoreVersionError(StoreError):
    """The store was written by a newer release."""


class ProviderError(WorldError):
    """A model provider gave no reply. A completer returns these as the detail of a failed completion and raises none of them.

    The message is one line without keys, headers or URLs.
    """


class ProviderAuthError(ProviderError):
    """The key is missing, wrong, or not allowed to use this model."""


class ProviderRequestError(ProviderError):
    """The provider, or the library in front of it, does not take this request: unknown model, too long, unsupported parameter."""


class ProviderRefusedError(ProviderError):
    """The provider's content filter refused the request."""


class ProviderUnavailableError(ProviderError):
    """A rate limit, a server error, a timeout, a cut connection, or a reply that is not the protocol's.

    `retry_after_s` is how long the provider asks to wait, in seconds; None if it does not say.
    """

    retryable = True

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class CapReached(WorldError):
    """The next request to a model may pass a spending cap; nothing was sent. What was done so far is kept and can be resumed."""


class InternalError(OsmiaMemoryError):
    """A broken invariant: a defect of this package."""
