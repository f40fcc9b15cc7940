# >>> ckpt gate: the first lines of a hook >>> (ckpt hooks uninstall takes them out)
ckpt_file=@GATE@
[ -f "$ckpt_file" ] || ckpt_file="$(git rev-parse --git-common-dir)/ckpt/hooks/gate.sh"
# Its standard input is read here, and again by what follows. Without a place for temporary files our own directory serves.
if [ -f "$ckpt_file" ] && [ "${CKPT_DISABLED-}" != 1 ]; then
  ckpt_input=$(mktemp 2>/dev/null || TMPDIR=${ckpt_file%/*} mktemp) && cat >"$ckpt_input" || exit 1
  sh "$ckpt_file" @HOOK@ "$@" <"$ckpt_input" || { ckpt_code=$?; rm -f "$ckpt_input"; exit "$ckpt_code"; }
  exec <"$ckpt_input"
  rm -f "$ckpt_input"
fi
# <<< ckpt gate <<<
