/** The text of a hook file: what lies there, and what it becomes with the gate in front. Pure. */

import type { Config } from '../config/defaults.ts'

/** What the gate needs; never reference-transaction, which would refuse even `--abort` (githooks(5)). */
const HOOKS = [
  'pre-commit',
  'pre-merge-commit',
  'pre-rebase',
  'pre-applypatch',
  'prepare-commit-msg',
  'commit-msg', // comes after the editor, in whose time a boundary may arise
] as const

/** Beside the gate, each where its key under `hooks.*` asks for it. */
const MORE_HOOKS = ['pre-push', 'post-commit', 'post-rewrite'] as const

export const ALL_HOOKS = [...HOOKS, ...MORE_HOOKS]

export type HookName = (typeof ALL_HOOKS)[number]

export function wantedHooks({ prePush, postCommit, postRewrite }: Config['hooks']): HookName[] {
  const on = { 'pre-push': prePush !== 'off', 'post-commit': postCommit, 'post-rewrite': postRewrite }
  return [...HOOKS, ...MORE_HOOKS.filter((hook) => on[hook])]
}

/** Hooks that git tells something on standard input (githooks(5)). */
const readsInput = (hook: HookName) => hook === 'pre-push' || hook === 'post-rewrite'

/** The texts in the package's `hooks/`. */
export interface Templates {
  gate: string
  /** The gate's second half, read only where something is pending. */
  refuse: string
  /** What the hooks beside the gate do. */
  more: string
  own: string
  before: string
  lines: string
  linesWithInput: string
}

const OPEN = '# >>> ckpt gate: '
const CLOSE = '# <<< ckpt gate <<<\n'

/** `lines`: ours are the first lines of somebody's hook; `before`: ours runs, then the one kept aside; `own`: nothing but ours. */
export type OurPart = 'own' | 'before' | 'lines'

/** Which part of a hook file is ours; null: none. */
export function ourPart(text: string): OurPart | null {
  const [, kind] = /^# >>> ckpt gate: (a hook of its own|before another hook|the first lines)/m.exec(text) ?? []
  if (kind === undefined || !text.includes(CLOSE)) return null
  return kind === 'the first lines' ? 'lines' : kind === 'a hook of its own' ? 'own' : 'before'
}

/** The file as its owner left it: without our lines. */
export function withoutOurs(text: string): string {
  const from = text.indexOf(OPEN)
  const to = text.indexOf(CLOSE, from)
  return from < 0 || to < 0 ? text : text.slice(0, from) + text.slice(to + CLOSE.length)
}

/** Whether our lines come before anything else that the file does. */
export function oursComesFirst(text: string): boolean {
  return text.startsWith(OPEN) || /^#![^\n]*\n$/.test(text.slice(0, text.indexOf(OPEN)))
}

const shells = /^#!\s*(?:\S*\/env\s+(?:-S\s+)?)?(?:\S*\/)?(?:sh|bash|dash|ash|ksh|mksh|zsh)(?:\s|$)/

/**
 * Whether our lines can be put first in this script. Not where it is no shell script, or reads itself again (`exec
 * python "$0"`, an archive behind `tail`): then a line more changes what it does. latin1: bytes are kept as they are.
 */
export function takesLines(text: string): boolean {
  if (text.includes('\0') || /\r\n/.test(text)) return false
  if (/\b(exec|tail|sed|awk|head|perl|cat)\b[^\n]*\$\{?(0|BASH_SOURCE)/.test(text)) return false
  if (!text.startsWith('#!')) return true // git gives it to sh
  return shells.test(text) && text.includes('\n')
}

export interface Filling {
  hook: HookName
  /** Where the gate is, as the hook's shell is to write it. */
  gate: string
}

const filled = (template: string, { hook, gate }: Filling) =>
  template.replaceAll('@HOOK@', () => hook).replaceAll('@GATE@', () => gate)

export function ownHook(templates: Templates, filling: Filling): string {
  return filled(templates.own, filling)
}

/** `kept`: where the other hook is, seen from the hooks directory. */
export function hookBefore(templates: Templates, filling: Filling, kept: string): string {
  return filled(templates.before, filling).replaceAll('@KEPT@', () => kept)
}

/** The script with our lines first; lines of ours that were there are replaced. */
export function withLines(text: string, templates: Templates, filling: Filling): string {
  const theirs = withoutOurs(text)
  const at = theirs.startsWith('#!') ? theirs.indexOf('\n') + 1 : 0
  const lines = readsInput(filling.hook) ? templates.linesWithInput : templates.lines
  return theirs.slice(0, at) + filled(lines, filling) + theirs.slice(at)
}

/** The gate beside a hooks directory of the repository's own; it moves with the repository. */
export const GATE_BESIDE = `"\${0%/*}/../ckpt/hooks/gate.sh"`
/** The gate of whatever repository the hook runs in. */
export const GATE_ASKED = '"$(git rev-parse --git-common-dir)/ckpt/hooks/gate.sh"'

/** What a person adds to a hook that is not ours to write. Right in a repository where ckpt was never installed, too. */
export function lineToAdd(hook: HookName): string {
  const gate = `ckpt_gate=${GATE_ASKED}; `
  const run = `sh "$ckpt_gate" ${hook} "$@"`
  if (!readsInput(hook)) return `${gate}[ ! -f "$ckpt_gate" ] || ${run} </dev/null || exit "$?"`
  const keep = `ckpt_input=$(mktemp 2>/dev/null || TMPDIR=\${ckpt_gate%/*} mktemp) && cat >"$ckpt_input" || exit 1`
  const then = `${run} <"$ckpt_input" || { ckpt_code=$?; rm -f "$ckpt_input"; exit "$ckpt_code"; }; exec <"$ckpt_input"; rm -f "$ckpt_input"`
  return `${gate}[ "\${CKPT_DISABLED-}" = 1 ] || [ ! -f "$ckpt_gate" ] || { ${keep}; ${then}; }`
}

/** Whether somebody's hook calls the gate: the line stands in it, not as a comment. */
export function hasLine(text: string, hook: HookName): boolean {
  return text
    .split('\n')
    .some((line) => !/^\s*#/.test(line) && line.includes('ckpt/hooks/gate.sh') && line.includes(` ${hook} `))
}

/** Whether that line is the first thing the script does: then running it with the gate's dry run runs nothing else. */
export function lineComesFirst(text: string, hook: HookName): boolean {
  const first = text.split('\n').find((line) => line.trim() !== '' && !line.startsWith('#'))
  return takesLines(text) && first?.trim() === lineToAdd(hook)
}
