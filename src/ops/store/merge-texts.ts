/** Three-way text merges by git itself: git-merge-file(1). */
import { CkptError } from '../../core/errors.ts'
import type { Oid } from '../../core/ids.ts'
import type { MergeRequest, MergeResult } from '../../core/plan.ts'
import { removeDrafts } from '../../git/whole-file.ts'
import type { Context } from '../worktree/context.ts'

/** What git looks at to call a file binary. */
const FIRST_BYTES = 8000

/** Which of the two states of a turn its text comes from, and which one is to come. */
const BACK = { base: 'after the turn', theirs: 'before the turn' }
const FORWARD = { base: BACK.theirs, theirs: BACK.base }

/** What is merged: ours, their base, theirs. */
export type Sides = readonly [ours: Buffer, base: Buffer, theirs: Buffer]

/** `isForward`: what a turn did is brought back. @throws CkptError DAMAGED for what is not whole in the store */
export async function mergeTexts(
  context: Context,
  { base, ours, theirs }: MergeRequest,
  { isForward = false } = {},
): Promise<MergeResult> {
  const { env, store } = context
  const { base: before, theirs: after } = isForward ? FORWARD : BACK
  const sides = await Promise.all([ours, base, theirs].map((oid: Oid) => store.objects.proven(oid)))
  const directory = `${store.worktreeDir}/tmp`
  env.files.mkdirSync(directory, { recursive: true, mode: 0o700 })
  const labels = ['on disk', before, after]
  const merged = await mergeContents(context, sides as unknown as Sides, { directory, labels })
  if (!merged) return { kind: 'binary' }
  const oid = store.objects.write('blob', merged.bytes)
  return { kind: merged.isClean ? 'clean' : 'conflict', oid }
}

/**
 * Null: they are no texts. `directory`: where files lie for git meanwhile; nothing else is written. `labels`: what
 * conflicts call the sides.
 */
export async function mergeContents(
  { env, store }: Context,
  sides: Sides,
  { directory, labels }: { directory: string; labels: readonly string[] },
): Promise<{ isClean: boolean; bytes: Buffer } | null> {
  if (sides.some((bytes) => bytes.subarray(0, FIRST_BYTES).includes(0))) return null
  const names = ['ours', 'base', 'theirs'].map((name) => `${directory}/merge-${env.random(6)}.${name}`)
  try {
    for (const [i, name] of names.entries()) env.files.writeFileSync(name, sides[i]!, { mode: 0o600, flag: 'wx' })
    const args = ['merge-file', '-p', ...labels.flatMap((one) => ['-L', one]), ...names]
    const { code, stdout, stderr } = await store.tryGit(args)
    // 255 is an error; below it is the number of conflicts, 127 at most.
    if (code > 127) throw new CkptError('INTERNAL', `git merge-file failed: ${stderr.trim()}. Nothing was changed.`)
    return { isClean: code === 0, bytes: stdout }
  } finally {
    removeDrafts(env, names)
  }
}
