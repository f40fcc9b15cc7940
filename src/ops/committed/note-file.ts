/** What is written down of a `ckpt commit` that is under way. It may have been damaged since, or be of another version. */
import type { Oid, SessionId, TurnNumber } from '../../core/ids.ts'
import { readIfThere, writeFileWhole } from '../../git/whole-file.ts'
import { noteFile } from '../worktree/commit-note.ts'
import type { Context } from '../worktree/context.ts'
import type { Taken } from './commits-file.ts'
import { type Entry, MARKS } from './entries.ts'
import type { Marked, Passed } from './users-index.ts'

/** What follows a commit. */
export interface Following {
  session: SessionId
  /** What the commit is made on; null: nothing yet. */
  head: Oid | null
  /**
   * What is in HEAD with the commit, and so in no later one. `seq`: the place in the order of the last checkpoint of the turn
   * that the commit holds. `isIn`: false where nothing in the commit is of it: it changed nothing, or somebody committed it.
   */
  turns: readonly { number: TurnNumber; checkpoint: Oid; seq: number; isIn?: boolean }[]
  /** Paths that it changes. */
  entries: ReadonlyMap<string, Entry>
  /** As HEAD had them; more of them may be here. */
  before: ReadonlyMap<string, Entry>
  /** What the turns did at these paths, one after the other. */
  passed: ReadonlyMap<string, readonly Passed[]>
  /** Of the turns, and neither planned nor in HEAD: for a later commit. */
  open: readonly string[]
  /** What it goes on from. */
  taken: Taken
  /** What git is given for it; undefined: not made yet. */
  message?: string
  /** The tree that it has, if no hook changes that. */
  tree?: Oid | undefined
}

/** A process: its number, and its start as proc(5) says it. */
export interface AtWork {
  pid: number
  started: string
}

export interface Note extends AtWork, Omit<Following, 'entries' | 'before' | 'passed' | 'taken' | 'open'> {
  open?: readonly string[]
  taken?: Taken
  /** Milliseconds since 1970, UTC. */
  time: number
  /** The git that makes the commit: it lives on where this process alone is killed. */
  git?: AtWork
  /** Paths of the user's index whose marks may be gone while it follows. */
  marked?: readonly Marked[]
  paths: [path: string, before: Entry, entry: Entry, passed?: readonly Passed[]][]
}

export function rewriteNote(context: Context, more: Partial<Note>): void {
  const note = readNote(context)
  if (note)
    writeFileWhole(context.env, noteFile(context), { content: JSON.stringify({ ...note, ...more } satisfies Note) })
}

/** Null: it is damaged, and says nothing. */
export function readNote(context: Context): Note | null {
  try {
    const note: Note = JSON.parse(readIfThere(context.env, noteFile(context))?.toString('utf8') ?? 'null')
    const isNote = isAtWork(note) && isList(note.turns, isObject) && isList(note.paths, isRow)
    if (!isNote) return null
    const { git, marked, open, taken, ...rest } = note
    return {
      ...rest,
      ...(isAtWork(git) ? { git } : {}),
      ...(isList(marked, isMarked) ? { marked } : {}),
      ...(isList(open, isText) ? { open } : {}),
      ...(taken === undefined ? {} : { taken: isObject(taken) && isObject(taken.turns) ? taken : { turns: {} } }),
    }
  } catch (error) {
    if (error instanceof SyntaxError) return null
    throw error
  }
}

type Check = (value: unknown) => boolean

const isText: Check = (value) => typeof value === 'string'
const isObject: Check = (value) => typeof value === 'object' && value !== null
const isList = (value: unknown, isOne: Check): boolean => Array.isArray(value) && value.every((one) => isOne(one))
const isAtWork = (value: AtWork | undefined | null): value is AtWork =>
  typeof value?.pid === 'number' && typeof value.started === 'string'
const isMarked: Check = (value) => {
  const [mark, paths] = Array.isArray(value) ? value : []
  return MARKS.includes(mark) && isList(paths, isText)
}
const isEntry: Check = (value) =>
  value === null || (isObject(value) && 'oid' in (value as object) && 'mode' in (value as object))
const isRow: Check = (value) => {
  const [path, before, entry, passed = []] = Array.isArray(value) ? value : []
  return isText(path) && isEntry(before) && isEntry(entry) && Array.isArray(passed)
}
