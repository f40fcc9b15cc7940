#!/bin/sh
# >>> ckpt gate: a hook of its own >>> (ckpt hooks uninstall removes it)
ckpt_hook=@HOOK@
ckpt_file=@GATE@
[ -f "$ckpt_file" ] || ckpt_file="$(git rev-parse --git-common-dir)/ckpt/hooks/gate.sh"
[ ! -f "$ckpt_file" ] || . "$ckpt_file"
# <<< ckpt gate <<<
