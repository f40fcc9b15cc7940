/** Verify, the disk: every file of the worktree read and hashed against the newest checkpoint. Believes no cache, writes nothing. */
import { uncoveredAt } from '../../core/beside.ts'
import { CkptError } from '../../core/errors.ts'
import { ancestorsOf, isRepresentable, type RelativePath, reasonedList, splitNul } from '../../core/paths.ts'
import { runGit } from '../../git/process.ts'
import { Directories } from '../../snapshot/directories.ts'
import { behindSymlink, isStats, look, onlyNames, permissions, readPath } from '../../snapshot/disk.ts'
import { listUntracked } from '../../snapshot/listing.ts'
import { type SnapshotView, viewOf } from '../../snapshot/view.ts'
import { walkDirectories } from '../../snapshot/walk.ts'
import { excluder, isOurs } from '../../snapshot/worktree.ts'
import { newestCheckpoint } from '../record/record.ts'
import type { Context } from '../worktree/context.ts'
import { readRefs } from '../worktree/sessions.ts'

interface Difference {
  path: RelativePath
  how: 'added' | 'changed' | 'deleted' | 'mode' | 'unreadable'
}

/** @throws CkptError VERIFY_FAILED that names what differs */
export async function verifyWorktree(context: Context): Promise<string> {
  const { store } = context
  const newest = await newestCheckpoint(context, await readRefs(context))
  if (!newest) throw new CkptError('VERIFY_FAILED', 'there is no checkpoint to compare the worktree with')
  const view = await viewOf(store, newest)
  const files = await store.trees.files(view.tree)
  const { signal } = new AbortController()
  const { env, worktree, config } = context
  const ignoreFiles = await worktree.ignoreFiles()
  const input = { worktree, ignoreFiles, store, index: null, limits: config.snapshot, signal }
  // It is never null: nobody gives the signal.
  const listed = (await listUntracked(env, input))!
  const different = [
    ...checkFiles(context, view, files),
    ...(await checkNew(context, view, { files, listed })),
    ...checkDirectories(context, view, { files: [...files.keys()], listed }),
  ]
  const id = newest.id.slice(0, 10)
  if (different.length === 0) return `${files.size} files are as in checkpoint ${id}`
  throw new CkptError(
    'VERIFY_FAILED',
    `not as in checkpoint ${id}: ${reasonedList(different.map(({ path, how }) => ({ path, reason: how })))}`,
    {
      paths: different.map(({ path }) => path),
    },
  )
}

type FileMap = Awaited<ReturnType<Context['store']['trees']['files']>>
type Listed = NonNullable<Awaited<ReturnType<typeof listUntracked>>>

function checkFiles({ env, worktree, store }: Context, view: SnapshotView, files: FileMap): Difference[] {
  const different: Difference[] = []
  const objects = onlyNames(store.objects)
  for (const [path, entry] of files) {
    const wanted = view.fileState(path, entry)
    const reading = readPath(env, { root: worktree.root, path }, objects)
    if (wanted.kind !== 'present') continue
    if (reading.kind === 'unreadable') different.push({ path, how: 'unreadable' })
    else if (reading.kind !== 'read') different.push({ path, how: 'deleted' })
    else if (reading.oid !== wanted.oid || reading.type !== wanted.type) different.push({ path, how: 'changed' })
    else if (wanted.type === 'file' && permissions(reading.stats) !== wanted.mode) different.push({ path, how: 'mode' })
  }
  return different
}

/** Paths that a snapshot taken now would have, and the checkpoint neither has nor names as left out. */
async function checkNew(
  { env, worktree, config, repository }: Context,
  view: SnapshotView,
  { files, listed }: { files: FileMap; listed: Listed },
): Promise<Difference[]> {
  const limits = config.snapshot
  const tracked = repository
    ? splitNul(await runGit(env, { args: ['ls-files', '-z'], cwd: repository.root }))
    : ([] as RelativePath[])
  const excluded = excluder(limits)
  const known = new Set<string>(tracked)
  const different: Difference[] = []
  for (const path of new Set([...listed.untracked, ...tracked])) {
    if (files.has(path) || uncoveredAt(view.beside, path) || excluded(path) || !isRepresentable(path)) continue
    if (isOurs(worktree, path) || behindSymlink(env, worktree.root, path)) continue
    const stats = look(env, worktree.root, path)
    if (!isStats(stats) || !(stats.isFile() || stats.isSymbolicLink())) continue
    if (stats.size > limits.maxFileSize && !known.has(path)) continue
    different.push({ path, how: 'added' })
  }
  return different
}

/** Directories that were empty or are, and permission modes. */
function checkDirectories(
  { env, worktree }: Context,
  { beside }: SnapshotView,
  { files, listed }: { files: readonly string[]; listed: Listed },
) {
  const had = new Set<string>(beside.emptyDirectories)
  for (const path of [...files, ...beside.emptyDirectories])
    for (let at = path.lastIndexOf('/'); at > 0; at = path.lastIndexOf('/', at - 1)) had.add(path.slice(0, at))
  const ignored = listed.ignored.filter((path) => path.endsWith('/')).map((path) => path.slice(0, -1))
  const closed = new Set<string>([...ignored, ...listed.nested, ...worktree.ours])
  const walk = walkDirectories(env, {
    root: worktree.root,
    known: new Directories(beside.defaults.directory),
    plain: beside.defaults.directory,
    // What the checkpoint had is looked at, whatever is ignored now.
    stop: (directory) => closed.has(directory) && !had.has(directory),
    seen: 0,
    late: () => false,
  })
  const isNew = (directory: RelativePath) =>
    !had.has(directory) && !uncoveredAt(beside, directory) && !ancestorsOf(directory).some((at) => closed.has(at))
  const different: Difference[] = walk.empty.filter(isNew).map((path) => ({ path, how: 'added' }))
  for (const directory of had as Set<RelativePath>) {
    const entry = walk.directories.get(directory)
    const wanted = beside.modes.get(`${directory}/` as RelativePath) ?? beside.defaults.directory
    if (!entry) {
      // A directory with files is named by them.
      if (beside.emptyDirectories.has(directory)) different.push({ path: directory, how: 'deleted' })
    } else if (entry.mode !== wanted) different.push({ path: directory, how: 'mode' })
  }
  return different
}
