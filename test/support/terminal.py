"""Runs a program on a pseudo-terminal: waits for each text, then types. Prints what was shown, as JSON with the exit code."""
import fcntl
import json
import os
import pty
import re
import select
import struct
import sys
import termios
import time

given = json.load(sys.stdin)
pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", *given["size"], 0, 0))
    os.chdir(given["cwd"])
    os.execve(given["argv"][0], given["argv"], given["vars"])

shown = ""
seen = 0
steps = given["steps"]
end = time.monotonic() + given["seconds"]
while time.monotonic() < end:
    ready, _, _ = select.select([terminal], [], [], 0.1)
    if ready:
        try:
            data = os.read(terminal, 65536)
        except OSError:  # Linux: the program has closed it
            break
        if not data:
            break
        shown += data.decode("utf-8", "replace")
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
    if steps and steps[0][0] in plain[seen:]:
        seen = len(plain)
        os.write(terminal, steps.pop(0)[1].encode())
else:
    os.kill(pid, 9)
_, status = os.waitpid(pid, 0)
json.dump({"shown": shown, "code": os.waitstatus_to_exitcode(status), "left": steps}, sys.stdout)
