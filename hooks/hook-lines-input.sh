# >>> ckpt gate: the first lines of a hook >>> (ckpt hooks uninstall takes them out)
ckpt_file=@GATE@
[ -f "$ckpt_file" ] || ckpt_file="$(git rev-parse --git-common-dir)/ckpt/hooks/gate.sh"
# Its standard input is read here, and again by what follows.
ckpt_input=$(mktemp) && cat >"$ckpt_input" || exit 1
[ ! -f "$ckpt_file" ] || sh "$ckpt_file" @HOOK@ "$@" <"$ckpt_input" || { rm -f "$ckpt_input"; exit 1; }
exec <"$ckpt_input"
rm -f "$ckpt_input"
# <<< ckpt gate <<<
