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

/** So many are merged by one call, or so many bytes: each process that we start waits for the next. */
const MOST = 64
const MOST_BYTES = 16 << 20

/**
 * One result for each request. `isForward`: what a turn did is brought back. @throws CkptError DAMAGED for what is not whole
 * in the store
 */
export async function mergeTexts(
  context: Context,
  requests: readonly MergeRequest[],
  { isForward = false } = {},
): Promise<MergeResult[]> {
  const { env, store } = context
  const { base: before, theirs: after } = isForward ? FORWARD : BACK
  const labels = ['on disk', before, after]
  const directory = `${store.worktreeDir}/tmp`
  env.files.mkdirSync(directory, { recursive: true, mode: 0o700 })
  const results: MergeResult[] = []
  let batch: Sides[] = []
  let bytes = 0
  for (const [number, { base, ours, theirs }] of requests.entries()) {
    const sides = await Promise.all([ours, base, theirs].map((oid: Oid) => store.objects.proven(oid)))
    batch.push(sides as unknown as Sides)
    bytes += sides.reduce((sum, { length }) => sum + length, 0)
    if (batch.length < MOST && bytes < MOST_BYTES && number < requests.length - 1) continue
    for (const merged of await mergeContents(context, batch, { directory, labels }))
      results.push(
        merged
          ? { kind: merged.isClean ? 'clean' : 'conflict', oid: store.objects.write('blob', merged.bytes) }
          : { kind: 'binary' },
      )
    ;[batch, bytes] = [[], 0]
    await env.progress(`merging: ${number + 1} of ${requests.length} texts`)
  }
  return results
}

/**
 * Arguments: three labels, then names to which `.ours`, `.base` and `.theirs` are added, and `.merged` for what comes of them.
 * Prints how each ended; nothing of one whose result could not be opened.
 */
const MERGE_EACH = `f() { ours=$1 base=$2 theirs=$3; shift 3
for name; do
{ git merge-file -p -L "$ours" -L "$base" -L "$theirs" "$name.ours" "$name.base" "$name.theirs"; echo $? >&3; } 3>&1 >"$name.merged"
done; }; f`

/**
 * One result for each; null: they are no texts. `directory`: where files lie for git meanwhile; nothing else is written.
 * `labels`: what conflicts call the sides.
 */
export async function mergeContents(
  { env, store }: Context,
  batch: readonly Sides[],
  { directory, labels }: { directory: string; labels: readonly string[] },
): Promise<({ isClean: boolean; bytes: Buffer } | null)[]> {
  const { files } = env
  const isText = (sides: Sides) => !sides.some((bytes) => bytes.subarray(0, FIRST_BYTES).includes(0))
  const names = batch.map((sides) => (isText(sides) ? `${directory}/merge-${env.random(6)}` : null))
  const texts = names.filter((name) => name !== null)
  if (texts.length === 0) return names.map(() => null)
  const drafts = texts.flatMap((name) => ['ours', 'base', 'theirs', 'merged'].map((part) => `${name}.${part}`))
  try {
    const contents = batch.filter(isText).flatMap((sides) => [...sides, ''])
    for (const [i, draft] of drafts.entries()) files.writeFileSync(draft, contents[i]!, { mode: 0o600, flag: 'wx' })
    const args = ['-c', `alias.merge-each=!${MERGE_EACH}`, 'merge-each', ...labels, ...texts]
    const { code, stdout, stderr } = await store.tryGit(args)
    const codes = new Map(
      stdout
        .toString('latin1')
        .trim()
        .split('\n')
        .map((one, i) => [texts[i]!, Number(one)]),
    )
    // 255 is an error; below it is the number of conflicts, 127 at most.
    if (code !== 0 || codes.size !== texts.length || [...codes.values()].some((one) => !(one <= 127)))
      throw new CkptError('INTERNAL', `git merge-file failed: ${stderr.trim()}. Nothing was changed.`)
    return names.map((name) =>
      name === null ? null : { isClean: codes.get(name) === 0, bytes: files.readFileSync(`${name}.merged`) },
    )
  } finally {
    removeDrafts(env, drafts)
  }
}
