/** The checkpoints that the store's objects tell of, whether or not a ref leads to them. */
import { type Checkpoint, parseCheckpoint } from '../../core/checkpoint.ts'
import { unlessDamaged } from '../../core/errors.ts'
import type { Oid } from '../../core/ids.ts'
import type { Store } from '../../git/store.ts'
import type { Context } from '../worktree/context.ts'
import { readLoose } from './verify-objects.ts'

export interface Known {
  checkpoints: Map<Oid, Checkpoint>
  /** Commits of prompts. */
  prompts: Oid[]
  /** Refs that can be read, of every worktree. */
  whole: Map<string, Oid>
}

export async function readKnown(context: Context, whole: ReadonlyMap<string, Oid>): Promise<Known> {
  const known: Known = { checkpoints: new Map(), prompts: [], whole: new Map(whole) }
  for (const commit of await everyCommit(context)) await learn(context.store, commit, known)
  return known
}

const TYPES = '--batch-check=%(objectname) %(objecttype)'

/** All commits of the store, whether or not a ref reaches them, and what may be one: git-cat-file(1). */
async function everyCommit(context: Context): Promise<Oid[]> {
  const { store } = context
  const commits = (out: Buffer) =>
    lines(out).flatMap((row) => (row.endsWith(' commit') ? [row.slice(0, row.indexOf(' ')) as Oid] : []))
  const all = await store.tryGit(['cat-file', '--batch-all-objects', TYPES])
  if (all.code === 0) return commits(all.stdout)
  // It ends at an object whose type is garbled. Names alone are told without a look at what they name.
  const damaged = readLoose(context).damaged
  const names = lines(await store.git(['cat-file', '--batch-all-objects', '--batch-check=%(objectname)']))
  const whole = names.filter((name) => !damaged.has(name as Oid))
  return [...commits(await store.git(['cat-file', TYPES], { input: `${whole.join('\n')}\n` })), ...damaged.keys()]
}

const lines = (out: Buffer): string[] => out.toString('latin1').split('\n').filter(Boolean)

/** A commit that cannot be read, or is no checkpoint that we would write, tells nothing. */
async function learn(store: Store, commit: Oid, known: Known): Promise<void> {
  await unlessDamaged(async () => {
    const text = (await store.objects.get(commit, 'commit')).toString('utf8')
    if (text.endsWith('\n\nprompts\n')) known.prompts.push(commit)
    else if (text.includes('\nCkpt-Kind: ')) known.checkpoints.set(commit, parseCheckpoint(commit, text))
  }, undefined)
}

/** First-parent ancestors, with the tips. */
export function reachable({ checkpoints }: Known, tips: Iterable<Oid>): Set<Oid> {
  const seen = new Set<Oid>()
  for (const tip of tips)
    for (let id: Oid | undefined = tip; id && !seen.has(id); id = checkpoints.get(id)?.parents[0]) seen.add(id)
  return seen
}

/** What was saved around an undo, and what came late while one was pending, is on no branch of turns. */
export function comesFromSafety(known: Known, { kind, late, parents }: Checkpoint): boolean {
  const parent = parents[0] && known.checkpoints.get(parents[0])
  return kind === 'safety' || (late === true && !!parent && comesFromSafety(known, parent))
}
