# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
"""Builds the workers with each language's own package client, all below build/peers.

What a machine lacks is a reason to skip a toolchain, never a failure of the benchmark.
"""

import os
import re
import shutil
import subprocess
import sys

from driver.places import BUILD, ROOT, SOURCE

PATIENCE_S = 900


class Missing(Exception):
    """Why a toolchain's peers are skipped."""


def _need(*programs):
    for program in programs:
        if not shutil.which(program):
            raise Missing(f"{program} is not on this machine")


def _complaint(log):
    """The first line that complains, or the last, without addresses and places."""
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    complains = re.compile(r"\berror\b|\bfailed\b|\*\*\*", re.IGNORECASE)
    line = next(filter(complains.search, lines), (lines or ["no output"])[-1])
    line = re.sub(r"https?://[^\s\"']+|lookup \S+", "the registry", line)
    return line.replace(f"{ROOT}/", "").replace("|", "/").strip()[:160]


def _call(folder, *words, **env):
    """Runs a step; its output goes to build/peers/log, and the first complaint is the reason."""
    log = BUILD / "log"
    with open(log, "wb") as file:
        try:
            done = subprocess.run(
                words,
                cwd=folder,
                env={**os.environ, **env},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                timeout=PATIENCE_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise Missing(f"{os.path.basename(words[0])} did not end in time") from error
    if done.returncode != 0:
        raise Missing(f"{os.path.basename(words[0])}: {_complaint(log)}")


def _copy(kind):
    """Clients that write beside the manifest work on a copy of it."""
    shutil.copytree(SOURCE / kind, BUILD / kind, dirs_exist_ok=True)
    return BUILD / kind


def _said(*words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    lines = (done.stdout + done.stderr).strip().splitlines()
    return lines[0].strip() if lines else "unknown"


def _build_c():
    _need("cmake", "cc")
    _call(
        SOURCE,
        "cmake",
        "-S",
        str(SOURCE / "c"),
        "-B",
        str(BUILD / "c"),
        "-DCMAKE_BUILD_TYPE=Release",
    )
    _call(SOURCE, "cmake", "--build", str(BUILD / "c"), "--parallel", str(os.cpu_count() or 1))
    return _said("cc", "--version")


def _build_go():
    _need("go")
    (BUILD / "go").mkdir(parents=True, exist_ok=True)
    _call(
        SOURCE / "go",
        "go",
        "build",
        "-o",
        f"{BUILD / 'go'}/",
        "./redsync",
        "./redislock",
        "./rueidislock",
        GOTOOLCHAIN="local",
        GOFLAGS="-mod=readonly -buildvcs=false",
    )
    return _said("go", "version").removeprefix("go version ")


def _build_java():
    _need("java", "mvn")
    version = _said("java", "-version")
    found = re.search(r'"(\d+)', version)
    if not found or int(found.group(1)) < 17:
        raise Missing(f"Redisson 4 needs Java 17: {version}")
    _call(_copy("java"), "mvn", "-q", "-B", "compile")
    return version


def _build_node():
    _need("node", "npm")
    _call(_copy("node"), "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
    return f"Node.js {_said('node', '--version')}"


def _build_python():
    venv = _copy("python") / "venv"
    if not (venv / "bin" / "pip").exists():
        _call(SOURCE, sys.executable, "-m", "venv", str(venv))
    _call(venv.parent, str(venv / "bin" / "pip"), "install", "-q", "-r", "requirements.txt")
    return _said(str(venv / "bin" / "python"), "--version")


BUILDERS = {
    "c": _build_c,
    "go": _build_go,
    "java": _build_java,
    "node": _build_node,
    "python": _build_python,
}


def build(kinds):
    """Gives what each toolchain says of itself, and the reasons why others are skipped."""
    BUILD.mkdir(parents=True, exist_ok=True)
    versions, reasons = {}, {}
    for kind in kinds:
        print(f"peers: building the workers in {kind}", file=sys.stderr, flush=True)
        try:
            versions[kind] = BUILDERS[kind]()
        except Missing as missing:
            reasons[kind] = str(missing)
            print(f"peers: skipped, {missing}", file=sys.stderr, flush=True)
    return versions, reasons


def command(peer):
    """The command that starts one worker of a peer."""
    program, *words = peer.program
    place = BUILD / peer.kind
    if peer.kind == "java":
        path = f"{place / 'target' / 'classes'}:{place / 'target' / 'lib'}/*"
        return ["java", "-cp", path, program, *words]
    if peer.kind == "node":
        return ["node", str(place / program), *words]
    if peer.kind == "python":
        return [str(place / "venv" / "bin" / "python"), str(place / program), *words]
    return [str(place / program), *words]
