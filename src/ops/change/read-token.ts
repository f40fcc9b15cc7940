/** Reading the token of a dry run, which came through somebody's hands. */
import * as z from 'zod/mini'
import { CkptError } from '../../core/errors.ts'
import type { RedoOptions } from './redo.ts'
import type { RestoreOptions } from './restore.ts'
import type { Token } from './token.ts'
import type { UndoOptions } from './undo.ts'

const text = z.string().check(z.minLength(1))
const flag = z.optional(z.boolean())
const count = z.optional(z.int().check(z.positive()))
/** As the worktree names them: itself is the empty one. */
const paths = z.optional(z.array(z.string()))
const mode = z.enum(['refuse', 'merge', 'force', 'skip'])
const common = { session: z.optional(text), dryRun: flag }
const made = { v: z.literal(1), hash: text }

/** Strict: an option of another version's that this one does not know must not be passed over. */
const tokenSchema = z.discriminatedUnion('op', [
  z.strictObject({
    ...made,
    op: z.literal('undo'),
    options: z.strictObject({
      ...common,
      turns: count,
      to: z.optional(text),
      step: flag,
      only: z.optional(text),
      mode,
      unclaimed: flag,
      interrupt: flag,
      paths,
    } satisfies Record<keyof UndoOptions, unknown>),
  }),
  z.strictObject({
    ...made,
    op: z.literal('redo'),
    options: z.strictObject({ ...common, turns: count, all: flag, mode } satisfies Record<keyof RedoOptions, unknown>),
  }),
  z.strictObject({
    ...made,
    op: z.literal('restore'),
    options: z.strictObject({ ...common, id: text, exact: flag, force: flag, move: flag, paths } satisfies Record<
      keyof RestoreOptions,
      unknown
    >),
  }),
])

/** @throws CkptError USAGE */
export function readToken(given: string): Token {
  try {
    const read = Buffer.from(given, 'base64url') // which passes over what is no such text
    const token = tokenSchema.safeParse(JSON.parse(read.toString('utf8')))
    if (read.toString('base64url') === given && token.success) return token.data
  } catch {
    // falls through to the one error for every unreadable token
  }
  throw new CkptError('USAGE', 'That is not a token of a dry run. Nothing was changed.', {
    hints: ['ckpt undo --dry-run'],
  })
}
