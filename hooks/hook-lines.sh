# >>> ckpt gate: the first lines of a hook >>> (ckpt hooks uninstall takes them out)
ckpt_file=@GATE@
[ -f "$ckpt_file" ] || ckpt_file="$(git rev-parse --git-common-dir)/ckpt/hooks/gate.sh"
[ ! -f "$ckpt_file" ] || sh "$ckpt_file" @HOOK@ "$@" </dev/null || exit "$?"
# <<< ckpt gate <<<
