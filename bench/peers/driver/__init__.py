# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
"""The driver of the peers' benchmark: it builds the workers, runs them and judges their logs."""
