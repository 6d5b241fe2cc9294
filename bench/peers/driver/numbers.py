# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
"""Numbers as the page has them: three digits, and counts whole."""


def number(value):
    if value is None:
        return "-"
    if isinstance(value, int) or value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
