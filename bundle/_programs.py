# SPDX-License-Identifier: BSD-2-Clause
"""The commands of a wheel: dl2-load and the others lie in the package's libexec/."""
import os
import sys


def main() -> None:
    run = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libexec", "run")
    os.execv(run, [run, os.path.basename(sys.argv[0]), *sys.argv[1:]])
