/**
 * What every ref of a worktree was last moved to, written down beside the refs: git itself cannot tell a ref that was
 * moved back from one that was never further. A line before each transaction and one after it, each with a checksum that
 * takes in the line before; folded into one line when the file has grown.
 *
 * ```
 * <sum> move refs/ckpt/@main/s/live <from> <to> refs/… <from> <to>
 * <sum> done
 * ```
 */
import { createHash } from 'node:crypto'
import { CkptError } from '../core/errors.ts'
import { isOid, type Oid } from '../core/ids.ts'
import { type Env, errno } from '../env.ts'
import type { RefEdit } from './refs.ts'
import { appendTo, readIfThere, writeFileWhole } from './whole-file.ts'

/** No such ref. */
const NONE = '-'
/** A transaction that did not care what was there. */
const ANY = '*'
const DONE = 'done'
/** Characters; and no sooner than at twice what is folded already, or many refs would be written again with each move. */
const FOLD_AT = 32_768

export interface Tips {
  /** What each ref may be: one value, or two where a transaction was cut short. Null: no such ref. */
  refs: Map<string, Set<Oid | null>>
  /** Values that a ref had lost when it was next moved: somebody else had moved it meanwhile. */
  overtaken: { ref: string; was: Oid }[]
}

/** The worktree a ref belongs to (its id); null for refs that are no worktree's. */
export function worktreeOf(ref: string): string | null {
  const parts = ref.split('/')
  if (parts[0] !== 'refs') return null
  return (parts[1] === 'ckpt' ? parts[2] : parts[1] === 'notes' && parts[2] === 'ckpt' ? parts[3] : undefined) ?? null
}

/** `directory` is the store's. */
export const tipsFile = (directory: string, worktree: string) => `${directory}/worktrees/${worktree}/tips`

const sumOf = (previous: string, text: string) =>
  createHash('sha256').update(`${previous} ${text}`).digest('hex').slice(0, 16)

/**
 * Writes down what is about to be moved; the result is to be called once it was moved. `directory` is the store's.
 * The caller holds the worktree's lock.
 */
export function noteMoves(
  env: Env,
  directory: string,
  { edits, sync }: { edits: readonly RefEdit[]; sync: boolean },
): () => void {
  const byWorktree = new Map<string, RefEdit[]>()
  for (const edit of edits) {
    const worktree = worktreeOf(edit.ref)
    if (worktree !== null) byWorktree.set(worktree, [...(byWorktree.get(worktree) ?? []), edit])
  }
  const files = [...byWorktree].map(([worktree, own]) => {
    const file = tipsFile(directory, worktree)
    append(env, file, { text: moveText(own), sync })
    return file
  })
  return () => {
    for (const file of files) {
      try {
        append(env, file, { text: DONE, sync: false })
      } catch (error) {
        // The refs stand. Without this line either value is believed, as after a kill.
        if (errno(error) === undefined) throw error
      }
    }
  }
}

const moveText = (edits: readonly RefEdit[]) =>
  `move ${edits.map(({ ref, from, to }) => `${ref} ${from === undefined ? ANY : (from ?? NONE)} ${to ?? NONE}`).join(' ')}`

function append(env: Env, file: string, { text, sync }: { text: string; sync: boolean }): void {
  const { files } = env
  const old = readIfThere(env, file)?.toString('latin1') ?? ''
  // Never between a transaction and its end: both values of what it moves would be believed.
  const isLong = text !== DONE && old.length > Math.max(FOLD_AT, 2 * old.indexOf('\n'))
  if (old === '' || !old.endsWith('\n') || isLong) {
    files.mkdirSync(file.slice(0, file.lastIndexOf('/')), { recursive: true, mode: 0o700 })
    const kept = folded(old)
    const last = lastSum(kept)
    writeFileWhole(env, file, { content: `${kept}${sumOf(last, text)} ${text}\n` })
    return
  }
  appendTo(env, file, { text: `${sumOf(lastSum(old), text)} ${text}\n`, sync })
}

const lastSum = (text: string) => text.slice(text.lastIndexOf('\n', text.length - 2) + 1).slice(0, 16)

/** The same in one line, without a line that was cut short. What cannot be read stays as it is, for `verify` to name. */
function folded(text: string): string {
  const whole = text.slice(0, text.lastIndexOf('\n') + 1)
  const tips = parseTips(whole)
  if (tips === null || whole === '') return whole
  const rows = [
    ...[...tips.refs].map(([ref, values]) => `${ref} ${[...values].map((one) => one ?? NONE).join(',')}`),
    ...tips.overtaken.map(({ ref, was }) => `!${ref} ${was}`),
  ]
  const all = `all ${rows.filter((row) => !row.endsWith(` ${NONE}`)).join(' ')}`.trimEnd()
  return `${sumOf('', all)} ${all}\n`
}

/** Null: a line does not fit its checksum. */
function parseTips(text: string): Tips | null {
  const tips: Tips = { refs: new Map(), overtaken: [] }
  let previous = ''
  let open: string[] | null = null
  for (const line of text.split('\n').slice(0, -1)) {
    const [sum, body] = [line.slice(0, 16), line.slice(17)]
    if (sum !== sumOf(previous, body) || line[16] !== ' ') return null
    previous = sum
    const [kind, ...words] = body.split(' ')
    if (kind === 'all') readAll(tips, words)
    else if (kind === 'move') {
      readMove(tips, words, false)
      open = words
    } else if (open) {
      readMove(tips, open, true)
      open = null
    }
  }
  return tips
}

const oidIn = (word: string | undefined): Oid | null => (word !== undefined && isOid(word) ? word : null)

function readAll({ refs, overtaken }: Tips, words: readonly string[]): void {
  for (let i = 0; i + 1 < words.length; i += 2) {
    const [ref, values] = [words[i]!, words[i + 1]!]
    const was = oidIn(values)
    if (!ref.startsWith('!')) refs.set(ref, new Set(values.split(',').map(oidIn)))
    else if (was) overtaken.push({ ref: ref.slice(1), was })
  }
}

/** `done`: it went through, so that only the new value is right. */
function readMove({ refs, overtaken }: Tips, words: readonly string[], done: boolean): void {
  for (let i = 0; i + 2 < words.length; i += 3) {
    const [ref, from, to] = [words[i]!, words[i + 1]!, oidIn(words[i + 2])]
    const known = refs.get(ref)
    if (!done) {
      for (const was of known ?? []) if (was && from !== ANY && !known!.has(oidIn(from))) overtaken.push({ ref, was })
      refs.set(ref, new Set([...(known ?? [null]), ...(from === ANY ? [] : [oidIn(from)]), to]))
    } else refs.set(ref, new Set([to]))
  }
}

/** What was written down, line by line; null: nothing yet. */
export function writtenTips(env: Env, directory: string, worktree: string): string | null {
  return readIfThere(env, tipsFile(directory, worktree))?.toString('latin1') ?? null
}

/** A ref that is not among those of `now`, though it was moved and never removed. What cannot be read tells of none. */
export function goneRef(written: string | null, now: readonly { ref: string }[]): { ref: string; was: Oid } | null {
  const tips = written?.endsWith('\n') ? parseTips(written) : null
  if (tips === null) return null
  const there = new Set(now.map(({ ref }) => ref))
  for (const [ref, values] of tips.refs) {
    const [was] = values
    if (was && !values.has(null) && !there.has(ref)) return { ref, was }
  }
  return null
}

/** Null: none was written yet. @throws CkptError DAMAGED */
export function readTips(env: Env, directory: string, worktree: string): Tips | null {
  const text = writtenTips(env, directory, worktree)
  if (text === null) return null
  const tips = text.endsWith('\n') ? parseTips(text) : null
  if (tips) return tips
  throw new CkptError(
    'DAMAGED',
    `The record of where the refs of ${worktree} were last moved to cannot be read. Nothing was changed.`,
    { hints: ['ckpt doctor --fix   (believes the refs as they are)'] },
  )
}

/** Believes the refs as they are: what was written down before is dropped. */
export function resetTips(
  env: Env,
  { directory, worktree }: { directory: string; worktree: string },
  refs: readonly { ref: string; oid: Oid }[],
) {
  const own = refs.filter(({ ref }) => worktreeOf(ref) === worktree)
  const all = `all ${own.map(({ ref, oid }) => `${ref} ${oid}`).join(' ')}`.trimEnd()
  writeFileWhole(env, tipsFile(directory, worktree), { content: `${sumOf('', all)} ${all}\n` })
}
