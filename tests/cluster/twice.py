#!/usr/bin/env python3
"""Runs a test that depends on real processes, sockets and launchers, and runs it again if it fails: on a machine with
neighbours a process may stand still for longer than a test can wait. The second run decides; the first failure is printed.

    twice.py COMMAND [ARGUMENT...]
"""

import subprocess
import sys

code = subprocess.run(sys.argv[1:]).returncode
if code:
    print(f"twice.py: it failed with {code}; once more", flush=True)
    code = subprocess.run(sys.argv[1:]).returncode
sys.exit(code if code >= 0 else 1)
