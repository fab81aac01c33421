"""The type stubs say what the module has."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import millrace
from millrace import _native

STUBS = Path(millrace.__file__).with_name("_native.pyi")


def parameters(function):
    arguments = function.args
    names = [a.arg for a in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]]
    return [name for name in names if name not in ("self", "cls")]


def test_names_and_parameters_are_the_same():
    stubs = {}
    for node in ast.parse(STUBS.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            stubs[node.name] = parameters(node)
        elif isinstance(node, ast.ClassDef):
            stubs[node.name] = None
            for member in node.body:
                if isinstance(member, ast.FunctionDef):
                    is_property = any(getattr(d, "id", "") == "property" for d in member.decorator_list)
                    stubs[f"{node.name}.{member.name}"] = None if is_property else parameters(member)
        elif isinstance(node, ast.AnnAssign):
            stubs[node.target.id] = None
    found = {}
    for name, value in vars(_native).items():
        if name.startswith("__"):
            continue
        if not inspect.isclass(value):
            found[name] = list(inspect.signature(value).parameters) if callable(value) else None
            continue
        found[name] = None
        if issubclass(value, Exception):
            continue
        for member, what in vars(value).items():
            if callable(what) and not member.startswith("__"):
                signature = inspect.signature(what)
                found[f"{name}.{member}"] = [p for p in signature.parameters if p != "self"]
            elif inspect.isgetsetdescriptor(what) and not member.startswith("__"):
                found[f"{name}.{member}"] = None
    plain = {name: value for name, value in stubs.items() if ".__" not in name and name[0] != "_"}
    assert plain == found
    assert stubs["Index.__new__"] == list(inspect.signature(millrace.Index).parameters)


def test_everything_has_a_docstring():
    for name in millrace.__all__:
        value = getattr(millrace, name)
        if name == "__version__":
            continue
        assert value.__doc__, name
        if inspect.isclass(value) and not issubclass(value, Exception):
            for member, what in vars(value).items():
                if not member.startswith("_"):
                    assert what.__doc__, f"{name}.{member}"


def test_stubtest_accepts_the_types(tmp_path):
    pytest.importorskip("mypy")
    told = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "millrace"], cwd=tmp_path, capture_output=True, text=True, timeout=200
    )
    assert told.returncode == 0, told.stdout + told.stderr
    assert "no issues found" in told.stdout
