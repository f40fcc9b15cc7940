"""A program on a pseudo-terminal: what it shows goes to standard output, what comes on standard input is typed."""
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios

pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    os.execvp(sys.argv[1], sys.argv[1:])
keys = 0
while True:
    ready, _, _ = select.select([terminal] if keys is None else [terminal, keys], [], [])
    if keys in ready:
        data = os.read(keys, 65536)
        if data:
            os.write(terminal, data)
        else:  # nobody is at the keys any more
            keys = None
            os.kill(pid, signal.SIGHUP)
    if terminal in ready:
        try:
            data = os.read(terminal, 65536)
        except OSError:  # Linux: the program has closed it
            break
        if not data:
            break
        os.write(1, data)
        if b"\x1b[6n" in data:  # where is the cursor
            os.write(terminal, b"\x1b[1;1R")
        if b"\x1b[c" in data:  # what are you
            os.write(terminal, b"\x1b[?62;c")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) & 127)
