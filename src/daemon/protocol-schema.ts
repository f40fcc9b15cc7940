/** What the daemon takes, as schemas: what comes over the socket is checked here. */
import * as z from 'zod'
import type { CkptEvent, CliCall, Hello, SubscribeRequest } from './protocol.ts'

const id = z.string().max(1024)
const natural = z.int().min(0)
/** What the system ends where a NUL is: words, variables and paths (execve(2)). */
const word = z.string().refine((text) => !text.includes('\0'))

export const helloRequest: z.ZodType<Hello> = z.object({
  token: z.string(),
  protocol: natural,
  client: z.string().max(200).optional(),
})
export const cliRequest: z.ZodType<CliCall> = z.object({
  token: z.string(),
  argv: z.array(word).min(1).max(100_000),
  cwd: word.regex(/^\//, 'Invalid string: must start with "/"'), // startsWith() is no format of JSON Schema's
  vars: z.record(word, word),
  input: z.string().optional(),
  terminal: z.boolean().default(false),
  columns: natural.default(80),
  progress: z.boolean().optional(),
})
export const subscribeRequest: z.ZodType<SubscribeRequest> = z.strictObject({
  after: z.strictObject({ epoch: id, seq: natural }).optional(),
})
/** What a program says that did something without the daemon. */
export const noticeRequest: z.ZodType<{ token: string; event: CkptEvent & { type: 'prune.done' } }> = z.object({
  token: z.string(),
  event: z.strictObject({
    type: z.literal('prune.done'),
    removed: z.array(z.strictObject({ session: id, turn: natural, worktree: id })),
    bytesFreed: z.number(),
    kept: natural,
  }),
})
/** What needs the token, and nothing else. */
export const tokenRequest: z.ZodType<{ token: string }> = z.object({ token: z.string() })
export const nothing: z.ZodType<Record<never, never>> = z.strictObject({})
