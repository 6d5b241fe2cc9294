# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
"""Where things are: the workers' sources, what is built of them, and the pages that are written."""

from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent
ROOT = SOURCE.parent.parent
BUILD = ROOT / "build" / "peers"
DOCS = ROOT / "docs" / "performance"
