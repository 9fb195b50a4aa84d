"""Wheels and installed distributions that the tests make up: nothing in them but what they say of themselves."""

from __future__ import annotations

import zipfile


def metadata(name, version, requires=()):
    """Return the text of a distribution's METADATA."""
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    return "\n".join([*lines, *(f"Requires-Dist: {one}" for one in requires)]) + "\n"


def write_wheel(folder, name, version, requires=(), tag="py3-none-any"):
    """Write a wheel and return its path."""
    stem = f"{name.replace('-', '_')}-{version}"
    path = folder / f"{stem}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{stem}.dist-info/METADATA", metadata(name, version, requires))
        archive.writestr(f"{stem}.dist-info/WHEEL", "Wheel-Version: 1.0\n")
    return path


def install(folder, name, version, requires=(), source=""):
    """Install a package of one module into a folder, as pip --target would."""
    module = name.replace("-", "_")
    (folder / module).mkdir(parents=True)
    (folder / module / "__init__.py").write_text(source)
    record = folder / f"{module}-{version}.dist-info"
    record.mkdir()
    (record / "METADATA").write_text(metadata(name, version, requires))
