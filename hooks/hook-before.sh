#!/bin/sh
# >>> ckpt gate: before another hook >>> (ckpt hooks uninstall puts that one back)
ckpt_hook=@HOOK@
ckpt_file=@GATE@
[ -f "$ckpt_file" ] || ckpt_file="$(git rev-parse --git-common-dir)/ckpt/hooks/gate.sh"
[ ! -f "$ckpt_file" ] || . "$ckpt_file"
[ ! -x "${0%/*}/@KEPT@" ] || exec "${0%/*}/@KEPT@" "$@"
# <<< ckpt gate <<<
