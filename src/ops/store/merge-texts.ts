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

/** `isForward`: what a turn did is brought back. @throws CkptError DAMAGED for what is not whole in the store */
export async function mergeTexts(
  { env, store }: Context,
  { base, ours, theirs }: MergeRequest,
  { isForward = false } = {},
): Promise<MergeResult> {
  const labels = isForward ? FORWARD : BACK
  const contents = await Promise.all([ours, base, theirs].map((oid: Oid) => store.objects.proven(oid)))
  if (contents.some((bytes) => bytes.subarray(0, FIRST_BYTES).includes(0))) return { kind: 'binary' }
  const directory = `${store.worktreeDir}/tmp`
  env.files.mkdirSync(directory, { recursive: true, mode: 0o700 })
  const names = ['ours', 'base', 'theirs'].map((name) => `${directory}/merge-${env.random(6)}.${name}`)
  try {
    for (const [i, name] of names.entries()) env.files.writeFileSync(name, contents[i]!, { mode: 0o600, flag: 'wx' })
    const args = [
      'merge-file',
      '-p',
      ...['on disk', labels.base, labels.theirs].flatMap((one) => ['-L', one]),
      ...names,
    ]
    const result = await store.tryGit(args)
    // 255 is an error; below it is the number of conflicts, 127 at most.
    if (result.code > 127) {
      throw new CkptError('INTERNAL', `git merge-file failed: ${result.stderr.trim()}. Nothing was changed.`)
    }
    const oid = store.objects.write('blob', result.stdout)
    return { kind: result.code === 0 ? 'clean' : 'conflict', oid }
  } finally {
    removeDrafts(env, names)
  }
}
