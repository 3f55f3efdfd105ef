"""`kit images list`, `kit images lock` and `kit images verify`."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import click

from kit.docker.choice import choose
from kit.docker.verify import verify_on_host
from kit.image_lock import (
    LOCK_NAME,
    ImageLock,
    LockedImage,
    filled,
    read_image_lock,
    write_image_lock,
)
from kit.images import digest_of_tag, registry_at, verify
from kit.options import home, json_option, open_host, registry_name
from kit.output import print_json, print_table, say
from kit.parts import Parts
from kit.registry.resolve import resolve
from kit.registry.tag import parse_tagged
from records.decode import to_object
from records.errors import UnresolvedImageError

_lock_option = click.option(
    "--lock",
    "lock_path",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help=f"Another lock than images/{LOCK_NAME}.",
)


_mirror_option = click.option(
    "--mirror",
    default="",
    callback=registry_name,
    metavar="REGISTRY",
    help="Ask this registry instead; digests must be the same.",
)


@click.group(cls=Parts)
def command() -> None:
    """The container images that images/images.lock.json binds by digest.

    \b
    Example:
      kit images verify
    """


@command.command("list")
@_lock_option
@json_option
def list_images(lock_path: Path | None, as_json: bool) -> None:
    """List the locked images and what is known of each platform.

    \b
    Example:
      kit images list
    """
    lock = read_image_lock(_path(lock_path))
    if as_json:
        print_json(to_object(lock))
        return
    print_table(("image", "platform", "index", "manifest", "image id", "MiB"), _rows(lock))


@command.command("lock")
@click.argument("name", default="")
@click.option("--add", metavar="REGISTRY/REPOSITORY:TAG", default="", help="Lock a new image.")
@_mirror_option
@_lock_option
@json_option
def lock_images(name: str, add: str, mirror: str, lock_path: Path | None, as_json: bool) -> None:
    """Ask the registry what the locked index leads to, and write it down.

    Without --add the index digest that stands in the lock decides: nothing is taken from a tag.

    \b
    Example:
      kit images lock vllm-openai
      kit images lock vllm-next --add docker.io/vllm/vllm-openai:v0.30.0
    """
    path = _path(lock_path)
    lock = read_image_lock(path)
    if add:
        image = _added(lock, name, add)
        lock = replace(lock, images={**lock.images, name: image})
    names = [name] if name else list(lock.images)
    for one in names:
        image = lock.image(one)
        say(f"{one}: asking {mirror or image.registry} for {image.index_digest}")
        with registry_at(mirror or image.registry, os.environ, say) as registry:
            found = resolve(registry, image.repository, image.index_digest)
        lock = replace(lock, images={**lock.images, one: filled(image, found)})
        write_image_lock(path, lock)
    chosen = ImageLock(lock.format, {one: lock.images[one] for one in names})
    if as_json:
        print_json(to_object(chosen))
    else:
        print_table(("image", "platform", "index", "manifest", "image id", "MiB"), _rows(chosen))


@command.command("verify")
@click.argument("host_name", default="", metavar="[HOST]")
@click.option("--accept-new", is_flag=True, help="On first contact, pin the host's key.")
@click.option("--image", "name", default="", help="Only this one of the lock.")
@_mirror_option
@_lock_option
@json_option
def verify_images(
    host_name: str,
    accept_new: bool,
    name: str,
    mirror: str,
    lock_path: Path | None,
    as_json: bool,
) -> None:
    """Walk index, manifests and configurations at the registry, and compare with the lock.

    A moved tag, other bytes under a digest, or a platform that differs is refused with what was
    got and what was wanted (exit 62); an entry that is not resolved yet has its index compared
    and ends with 63. With HOST: the image there, and the containers that run it.

    \b
    Example:
      kit images verify
      kit images verify user@gpu
      kit images verify --mirror mirror.example.org
    """
    path = _path(lock_path)
    lock = read_image_lock(path)
    if host_name:
        host = open_host(home(), host_name, accept_new=accept_new)
        choice = choose(path.parent, name, mirror, path)
        found_there = [to_object(one) for one in verify_on_host(host, choice)]
        if as_json:
            print_json(found_there)
        else:
            print_table(("what", "name", "image id"), [tuple(row.values()) for row in found_there])
        return
    rows = []
    for one in [name] if name else list(lock.images):
        image = lock.image(one)
        where = mirror or image.registry
        if not image.resolved:
            say(f"{one}: not resolved in the lock yet: index and tag alone can be compared")
        with registry_at(where, os.environ, say) as registry:
            found = verify(image, registry)
        rows += [
            {"image": one, "registry": where, "platform": platform, **to_object(p)}
            for platform, p in found.items()
        ]
    if as_json:
        print_json(rows)
    else:
        head = ("image", "registry", "platform", "manifest_digest", "image_id")
        print_table(head, [tuple(row[key] for key in head) for row in rows])
    unresolved = [one for one, image in lock.images.items() if not image.resolved]
    if unresolved and name in ("", *unresolved):
        raise UnresolvedImageError(
            f"{', '.join(unresolved)}: the index is what the registry serves, but the lock does "
            "not hold what it leads to",
            "kit images lock",
        )


def _path(given: Path | None) -> Path:
    return given or home().root / "images" / LOCK_NAME


def _added(lock: ImageLock, name: str, reference: str) -> LockedImage:
    if not name or name in lock.images:
        raise click.UsageError("--add wants a NAME that the lock does not hold yet")
    registry_name, repository, tag = parse_tagged(reference)
    with registry_at(registry_name, os.environ, say) as registry:
        digest = digest_of_tag(registry, repository, tag)
    say(f"{reference} is {digest}")
    return LockedImage(registry_name, repository, tag, digest, False, {})


def _rows(lock: ImageLock) -> list[tuple[object, ...]]:
    return [
        (
            name,
            platform,
            image.index_digest,
            p.manifest_digest or "not resolved",
            p.image_id or "not resolved",
            "not resolved" if p.layers_bytes is None else p.layers_bytes >> 20,
        )
        for name, image in lock.images.items()
        for platform, p in image.platforms.items()
    ]
