"""What this user may do there without a password. Reports: dstack#1381, analogsea#78."""

from __future__ import annotations

from collections.abc import Iterator

from kit.doctor.topic import PASS, WARN, Needs, Probe, Seen, Topic, Verdict

_PROBES = (Probe("id", ("id", "-u")), Probe("sudo", ("sudo", "-n", "true")))


def _check(seen: Seen, needs: Needs) -> Iterator[Verdict]:  # noqa: ARG001 - one signature for all
    if seen.text("id") == "0":
        yield Verdict("sudo", PASS, "root")
        return
    if seen.outputs["sudo"].status == 0:
        yield Verdict("sudo", PASS, "without a password")
        return
    found = "no sudo" if not seen.there("sudo") else seen.complaint("sudo")
    cause = "what is missing cannot be installed by the kit; measuring itself needs no root"
    remedy = "install what the other lines ask for by hand, or log in as a user who may"
    yield Verdict("sudo", WARN, found, cause, remedy)


RIGHTS = Topic(_PROBES, _check)
