"""The one error tree: what went wrong, what to type next, and an exit code of its own.

Invariant: every concrete class has a unique `exit_code`; `tests/test_errors.py` holds the table in
the README against this file.
"""

from __future__ import annotations


class KitError(Exception):
    """A failure a user can act on: `message` names the cause, `remedy` the next command."""

    exit_code = 1

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


# 10-19: what the user wrote
class PlanError(KitError):
    """The plan does not decode, or contradicts itself."""

    exit_code = 10


class UnlockedModelError(KitError):
    """The plan names a model that images/models.lock.json does not hold."""

    exit_code = 11


class UnknownHostError(KitError):
    """HOST is of a kind this kit does not know, or cannot be reached."""

    exit_code = 12


class UnknownRunError(KitError):
    """No such run in the records directory."""

    exit_code = 13


class HostUnreachableError(KitError):
    """Nothing answers at the host's address: the name, the network or the machine."""

    exit_code = 14


class NoSshServerError(KitError):
    """The machine answers, but no SSH server does at that port."""

    exit_code = 15


class HostKeyError(KitError):
    """The host's key is not known yet, or is not the one that was known."""

    exit_code = 16


class ScheduleError(KitError):
    """A schedule, fault or option of the reference server that does not decode."""

    exit_code = 17


class SshAuthError(KitError):
    """The SSH server is there and accepts none of the keys offered."""

    exit_code = 18


class SshKeyError(KitError):
    """No usable private key here: missing, malformed, or locked with no agent to unlock it."""

    exit_code = 19


# 20-29: the host
class HostUnfitError(KitError):
    """The host lacks what the plan needs: instruction set, memory, disk, Python."""

    exit_code = 20


class PortInUseError(KitError):
    """The port meant for the engine is taken."""

    exit_code = 21


class DiskFullError(KitError):
    """A record could not be written; everything before it is on disk."""

    exit_code = 22


class RunBusyError(KitError):
    """Another process holds the run directory."""

    exit_code = 23


class ClientCrashError(KitError):
    """A worker process of the measuring client ended before its window did."""

    exit_code = 24


class ConnectionLostError(KitError):
    """The connection to the host was lost and did not come back; what was started goes on there."""

    exit_code = 25


class SchedulerError(KitError):
    """A cluster's scheduler cannot be reached, refused what was asked, or lost a task."""

    exit_code = 26


# 30-39: the engine
class ProvisionError(KitError):
    """The engine or the model could not be installed from its lock."""

    exit_code = 30


class BindingError(KitError):
    """What is installed is not what the lock says, or changed during the run."""

    exit_code = 31


class EngineBootError(KitError):
    """The engine died or did not become healthy in time."""

    exit_code = 32


class EngineLeakError(KitError):
    """The engine stopped but left a process, port or GPU memory behind."""

    exit_code = 33


class BundleIncompleteError(KitError):
    """Parts of a bundle are not here yet; those that are were verified."""

    exit_code = 34


class BundleDamagedError(KitError):
    """A part or file of a bundle is not what its manifest says."""

    exit_code = 35


# 40-49: the records
class FormatError(KitError):
    """Bytes that are not a record of this format."""

    exit_code = 40


class ChainError(KitError):
    """A hash chain, seal or checkpoint does not hold: something was edited, lost or added."""

    exit_code = 41


class ForeignDirectoryError(KitError):
    """A directory that is not a run of this kit stands where records are expected."""

    exit_code = 42


class NotAPrefixError(KitError):
    """Local records are not a prefix of the remote ones: one of the two was edited."""

    exit_code = 43


class SigningError(KitError):
    """A signature could not be made: no key, no ssh-keygen, or one is there already."""

    exit_code = 44


class ClosedRunError(KitError):
    """A run that was closed, its host being gone, is not continued; or one cannot be closed."""

    exit_code = 45


# 50-59: outcomes that are answers, not accidents
class AuditFailedError(KitError):
    """The audit found errors: records, lists, signatures or history are not what they were."""

    exit_code = 50


class BootsFailedError(KitError):
    """The plan was carried out, but a planned boot ended in failure; the records say why."""

    exit_code = 51


class InterruptedRunError(KitError):
    """The run was interrupted and can be resumed."""

    exit_code = 52


class CalibrationError(KitError):
    """The client on this host is not exact enough for the plan."""

    exit_code = 53


class HostsFailedError(KitError):
    """Of several hosts at least one did not bring its blocks to an end; the others did."""

    exit_code = 54


class ClaimError(KitError):
    """A claim that is not known, or that the records it names do not give."""

    exit_code = 55


class FindingError(KitError):
    """No such finding, one of that number already, or one that cannot be retracted."""

    exit_code = 56


class AuditConductError(AuditFailedError):
    """The audit found records intact, but a run was not carried out as its plan demands."""

    exit_code = 57


class AuditDerivedError(AuditFailedError):
    """The audit found records intact, but tables, claims, findings or paper are not theirs."""

    exit_code = 58


class AuditHygieneError(AuditFailedError):
    """The audit found secrets, names, addresses or unclear licences in what is published."""

    exit_code = 59


# 60-69: registries, images, containers
class RegistryError(KitError):
    """A registry cannot be reached, refuses, or answers what its specification does not allow."""

    exit_code = 60


class RegistryBusyError(KitError):
    """A registry kept asking to come back later (429) until patience ended."""

    exit_code = 61


class ImageMismatchError(KitError):
    """What a registry, a mirror or a host holds under a name is not what the image lock says."""

    exit_code = 62


class UnresolvedImageError(KitError):
    """The image lock does not yet say what the index of an image leads to."""

    exit_code = 63


class DockerError(KitError):
    """The Docker daemon cannot be reached, or refused what was asked of it."""

    exit_code = 64


# 80-89: figures and paper
class ToolMissingError(KitError):
    """A program or library that this verb needs is not installed here."""

    exit_code = 80


class PaperError(KitError):
    """The paper does not build: an undefined claim or reference, or an error of TeX's own."""

    exit_code = 81


# 82-84: exports and imports
class ExportError(KitError):
    """What was asked for cannot be exported so: an open run, or a place that holds something."""

    exit_code = 82


class ForeignFileError(KitError):
    """A file of another tool that is not of the form expected, or holds no single requests."""

    exit_code = 83


# 85-89: verdicts, where the caller asked to fail on them
class ContradictedError(KitError):
    """A comparison came out contradicted, and the caller asked to fail on that."""

    exit_code = 85


class InconclusiveError(KitError):
    """A comparison is inconclusive, and the caller asked to fail on that."""

    exit_code = 86


class NotComparableError(KitError):
    """Records are not comparable, and the caller asked to fail on that."""

    exit_code = 87
