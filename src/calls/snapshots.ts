/** Snapshots without any agent: recorded, compared, brought back, cleaned up. */
import { defined } from '../core/defined.ts'
import { barePath, pathFromText, showPath } from '../core/paths.ts'
import { restore } from '../ops/change/restore.ts'
import { changedTexts, diff } from '../ops/history/diff.ts'
import { prune } from '../ops/prune.ts'
import { snapshotNow } from '../ops/snapshot-now.ts'
import { changeJson, diffJson, markJson } from '../results/json.ts'
import type { ChangeInfo, DiffInfo, FullDiffInfo, MarkInfo, PatchInfo, PruneInfo } from '../results/shapes.ts'
import type * as Requests from './requests.ts'
import { bytesOf, reading, type Scope, writing } from './scope.ts'

export const track = (scope: Scope, { message }: Requests.TrackRequest): Promise<MarkInfo> =>
  writing(scope, { create: 'unless-off', forgiving: true }, async (context) =>
    markJson(await snapshotNow(context, message, scope.arrived), context.store.durable),
  )

export const patch = (scope: Scope, { from, session }: Requests.PatchRequest): Promise<PatchInfo> =>
  reading(scope, async (context) => {
    const found = await diff(context, { a: from, b: 'worktree', ...defined({ session }) })
    const files = found.files.flatMap((file) => (file.oldPath === undefined ? [file] : [file, { path: file.oldPath }]))
    return { from: found.from, files: files.map(({ path }) => showPath(path)) }
  })

/** Puts the paths of a patch back, and deletes those that the checkpoint provably does not have. */
export const revertPatch = (
  scope: Scope,
  { session, patch: { from, files }, force, dryRun }: Requests.RevertPatchRequest,
): Promise<ChangeInfo> =>
  writing(scope, { forgiving: true }, async (context) => {
    const paths = files.map(({ path, pathBase64 }) =>
      barePath(pathBase64 === undefined ? pathFromText(path) : Buffer.from(pathBase64, 'base64').toString('latin1')),
    )
    const options = { id: from, exact: true, paths, ...defined({ session, force, dryRun }) }
    return changeJson(await restore(context, options, { arrived: scope.arrived }))
  })

export const restoreFiles = (scope: Scope, { paths, ...request }: Requests.RestoreRequest): Promise<ChangeInfo> =>
  writing(scope, { forgiving: true }, async (context) => {
    const options = { ...defined(request), ...(paths ? { paths: bytesOf(paths) } : {}) }
    return changeJson(await restore(context, options, { arrived: scope.arrived }))
  })

const sides = ({ from, to, session, paths }: Requests.DiffRequest) => ({
  ...defined({ a: from, b: to, session }),
  paths: bytesOf(paths),
})

export const compare = (scope: Scope, request: Requests.DiffRequest): Promise<DiffInfo> =>
  reading(scope, async (context) => {
    return diffJson(await scope.backends.diff(context, sides(request)), context.store)
  })

export const compareFully = (scope: Scope, request: Requests.DiffRequest): Promise<FullDiffInfo> =>
  reading(scope, async (context) => {
    await scope.backends.require(context, request.session, ['supportsDiff'])
    const ids = [request.from, request.to].filter((id) => id !== undefined)
    await scope.backends.requireCheckpoints(context, request.session, ids)
    const { from, to, files, warnings } = diffJson(await diff(context, sides(request)), context.store)
    const texts = new Map((await changedTexts(context, sides(request))).map((one) => [one.file.path as string, one]))
    const contents = (path: string) => texts.get(pathFromText(path)) ?? { before: '', after: '' }
    return {
      from,
      to,
      files: files.map((file) => ({ ...file, before: contents(file.path).before, after: contents(file.path).after })),
      warnings,
    }
  })

export const cleanup = (scope: Scope, { dryRun = false, ...limits }: Requests.CleanupRequest): Promise<PruneInfo> =>
  writing(scope, { create: false }, async (context) => {
    const { warnings } = context
    if (!context.exists) return { dryRun, removed: [], byHand: [], bytesFreed: 0, kept: 0, warnings }
    const { removed, byHand, bytesFreed, kept } = await prune(context, { dryRun, ...defined(limits) })
    return { dryRun, removed, byHand, bytesFreed, kept, warnings }
  })
