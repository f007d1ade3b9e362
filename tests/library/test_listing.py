"""The list of the library is that of its instances, without building them."""

from __future__ import annotations

import subprocess
import sys

from pmlopt.library import library, list_problems, load


def test_every_file_is_listed_under_its_name_in_order() -> None:
    listed = list_problems()
    assert [one.id for one in listed] == sorted(path.stem for path in library().glob("*/*.toml"))
    assert all(one.path.stem == one.id for one in listed)


def test_what_is_listed_is_what_the_instance_states() -> None:
    for one in list_problems()[::40]:
        made = load(one.path)
        stated = (made.id, made.title, made.path, made.cite, made.where)
        assert (one.id, one.title, one.path, one.cite, one.where) == stated


def test_the_list_loads_no_builder() -> None:
    code = (
        "import sys\nfrom pmlopt.library import list_problems\nlist_problems()\n"
        "assert not {'numpy', 'pmlopt.programs', 'pmlopt.library.instances'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
