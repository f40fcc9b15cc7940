/** The same requests as schemas: what comes from outside is checked here, in the library and on the socket alike. */
import * as z from 'zod'
import type * as Requests from './requests.ts'

const text = z.string().min(1).max(4096)
const session = z.string().min(1).max(1024).optional()
const flag = z.boolean().optional()
const count = z.int().min(1).max(999_999_999).optional()
const amount = z.number().min(0).optional()
/** A directory may have a slash behind it, as the paths have that we give. */
const isRelative = (at: string) =>
  !at.includes('\0') &&
  at
    .replace(/\/$/, '')
    .split('/')
    .every((part) => part !== '' && part !== '.' && part !== '..')
const wrongPath = { error: 'must be relative to the worktree, without empty, . or .. parts' }
const path = z.string().max(65_536).refine(isRelative, wrongPath)
const pathBase64 = z.base64().refine((at) => isRelative(Buffer.from(at, 'base64').toString('latin1')), wrongPath)
/** None at all would mean every path: an empty list is a mistake. */
const paths = z.array(path).min(1).max(100_000).optional()
const conflicts = z.enum(['refuse', 'merge', 'force', 'skip']).optional()

const atMostOne = (names: readonly string[]) => ({
  check: (given: object) => names.filter((name) => (given as Record<string, unknown>)[name] || false).length <= 1,
  error: `takes at most one of ${names.join(', ')}`,
})
const ofUndo = atMostOne(['turns', 'to', 'step', 'only'])
const ofRedo = atMostOne(['turns', 'all'])

export const nothing: z.ZodType<Record<never, never>> = z.strictObject({})
export const sessionRequest: z.ZodType<Requests.SessionRequest> = z.strictObject({ session })
export const trackRequest: z.ZodType<Requests.TrackRequest> = z.strictObject({ message: text.optional() })
export const patchRequest: z.ZodType<Requests.PatchRequest> = z.strictObject({ session, from: text })
export const restoreRequest: z.ZodType<Requests.RestoreRequest> = z.strictObject({
  session,
  id: text,
  exact: flag,
  force: flag,
  paths,
  dryRun: flag,
})
export const revertPatchRequest: z.ZodType<Requests.RevertPatchRequest> = z.strictObject({
  session,
  patch: z.strictObject({
    from: text,
    files: z.array(z.strictObject({ path, pathBase64: pathBase64.optional() })),
  }),
  force: flag,
  dryRun: flag,
})
export const diffRequest: z.ZodType<Requests.DiffRequest> = z
  .strictObject({ session, from: text.optional(), to: text.optional(), paths })
  .refine((given) => given.to === undefined || given.from !== undefined, { error: '`to` wants a `from`' })
export const cleanupRequest: z.ZodType<Requests.CleanupRequest> = z.strictObject({
  keep: count,
  olderThan: amount,
  maxBytes: amount,
  dryRun: flag,
})
export const undoRequest: z.ZodType<Requests.UndoRequest> = z
  .strictObject({
    session,
    turns: count,
    to: text.optional(),
    step: flag,
    only: text.optional(),
    paths,
    conflicts,
    unclaimed: flag,
    interrupt: flag,
    dryRun: flag,
  })
  .refine(ofUndo.check, { error: ofUndo.error })
export const redoRequest: z.ZodType<Requests.RedoRequest> = z
  .strictObject({ session, turns: count, all: flag, conflicts, dryRun: flag })
  .refine(ofRedo.check, { error: ofRedo.error })
export const revertRequest: z.ZodType<Requests.RevertRequest> = z.strictObject({
  session,
  messageId: text,
  partId: text.optional(),
  conflicts,
  unclaimed: flag,
  interrupt: flag,
  dryRun: flag,
})
export const unrevertRequest: z.ZodType<Requests.UnrevertRequest> = z.strictObject({ session, conflicts, dryRun: flag })
export const turnsRequest: z.ZodType<Requests.TurnsRequest> = z.strictObject({
  session,
  hidden: flag,
  abandoned: flag,
  limit: count,
})
export const showRequest: z.ZodType<Requests.ShowRequest> = z.strictObject({ session, id: text })
export const switchRequest: z.ZodType<Requests.SwitchRequest> = z.strictObject({
  session,
  id: text,
  force: flag,
  dryRun: flag,
})
export const applyRequest: z.ZodType<Requests.ApplyRequest> = z.strictObject({
  token: z.string().min(1).max(1_000_000),
})
export const setBackendRequest: z.ZodType<Requests.SetBackendRequest> = z.strictObject({
  session: z.string().min(1).max(1024),
  backend: z.string().min(1).max(100).nullable(),
})

const marker = { session: z.string(), messageId: text.optional(), marker: text.optional() }
export const markRequest: z.ZodType<Requests.MarkRequest> = z.discriminatedUnion('event', [
  z.strictObject({
    event: z.literal('prompt'),
    ...marker,
    kind: z.enum(['prompt', 'command', 'shell', 'compaction']).optional(),
    parent: text.optional(),
    agent: text.optional(),
    text: z.string().optional(),
  }),
  z.strictObject({
    event: z.literal('step'),
    ...marker,
    start: flag,
    tool: text.optional(),
    paths,
    callId: text.optional(),
  }),
  z.strictObject({
    event: z.literal('stop'),
    ...marker,
    status: z.enum(['completed', 'interrupted', 'failed']).optional(),
  }),
])
