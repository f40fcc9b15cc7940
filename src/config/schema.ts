/** What a configuration file may hold (zod, loaded only when there is one). */
import * as z from 'zod'
import { CkptError } from '../core/errors.ts'
import type { PartialConfig } from './defaults.ts'
import { DURATION, parseDuration, parseSize, SIZE } from './units.ts'

const measured = (
  { parse, written }: { parse: (text: string) => number | null; written: RegExp },
  what: string,
  least: number,
) =>
  z
    .union([z.number(what).int(what).min(least, what), z.string(what).regex(written, what)], what)
    .transform((value, context) => {
      const number = typeof value === 'number' ? value : parse(value)
      if (number !== null && number >= least) return number
      context.addIssue({ code: 'custom', message: what })
      return z.NEVER
    })

const SIZE_WORDS = 'a size in bytes, or like "10MiB"'
const size = measured({ parse: parseSize, written: SIZE }, SIZE_WORDS, 0)
const limit = measured({ parse: parseSize, written: SIZE }, `${SIZE_WORDS}, more than 0`, 1)
const TIME = 'milliseconds, or a time like "20s"'
const duration = measured({ parse: parseDuration, written: DURATION }, `${TIME}, more than 0`, 1)
/** Milliseconds that a timer takes: a longer one would be over at once (timers.html, `setTimeout`). */
const LONGEST_WAIT = 2 ** 31 - 1
const wait = duration.transform((milliseconds) => Math.min(milliseconds, LONGEST_WAIT))
/** 0: at once. */
const age = measured({ parse: parseDuration, written: DURATION }, TIME, 0)
const NEVER = '"never" or a time like "30d", more than 0'

/** Relative to what, and whose `~`, nobody could tell. */
const LOCATION = '"git" or an absolute directory'

/** What git is told on a command line: execve(2) takes no NUL in it, and not any length. */
const WHOLE = /^[^\0]*$/
const LONGEST = 4096
const PATTERN = `a gitignore pattern, without NUL, of at most ${LONGEST} characters`
const MOST = 1000
const PATTERNS = `a list of at most ${MOST} gitignore patterns`

const patterns = z
  .array(z.string(PATTERN).min(1, PATTERN).max(LONGEST, PATTERN).regex(WHOLE, PATTERN), PATTERNS)
  .max(MOST, PATTERNS)

const COMMAND = 'a shell command, or false'
const COUNT = 'a whole number, 0 for no limit'

export const configSchema = z.strictObject({
  /** For editors: where the JSON Schema is. Says nothing to us. */
  $schema: z.string('a path or URL of the JSON Schema').optional(),
  enableFileCheckpointing: z.boolean('true or false').optional(),
  checkpointKeepCount: z.number(COUNT).int(COUNT).nonnegative(COUNT).optional(),
  snapshot: z
    .strictObject({
      include: patterns.optional(),
      exclude: patterns.optional(),
      maxFileSize: size.optional(),
      maxBytes: size.optional(),
      deadline: wait.optional(),
    })
    .optional(),
  store: z
    .strictObject({
      maxBytes: limit.optional(),
      location: z
        .string(LOCATION)
        .regex(/^(git$|\/[^\0]*$)/, LOCATION)
        .optional(),
    })
    .optional(),
  prune: z
    .strictObject({
      olderThan: z.union([duration, z.literal('never').transform(() => null)], NEVER).optional(),
      grace: age.optional(),
    })
    .optional(),
  watch: z
    .strictObject({
      autoTurn: z.boolean('true or false').optional(),
      start: z.enum(['on-demand', 'never'], '"on-demand" or "never"').optional(),
      idleStop: duration.optional(),
      transcripts: z.boolean('true or false').optional(),
    })
    .optional(),
  commit: z
    .strictObject({
      auto: z.boolean('true or false').optional(),
      messageCommand: z
        .union([z.string().min(1, COMMAND).regex(WHOLE, COMMAND), z.literal(false).transform(() => null)], COMMAND)
        .optional(),
    })
    .optional(),
  agents: z
    .strictObject({
      tellUndone: z.boolean('true or false').optional(),
    })
    .optional(),
  hooks: z
    .strictObject({
      prePush: z.enum(['off', 'pending', 'uncovered'], '"off", "pending" or "uncovered"').optional(),
      postCommit: z.boolean('true or false').optional(),
      postRewrite: z.boolean('true or false').optional(),
    })
    .optional(),
})

/** @throws CkptError CONFIG that names the key, the file and what is allowed */
export function checkConfig(value: unknown, name: string, mend = `edit ${name}`): PartialConfig {
  const result = configSchema.safeParse(value)
  if (result.success) {
    const { $schema: _, ...part } = result.data
    return part
  }
  const issue = result.error.issues[0]!
  const at = issue.path.join('.')
  const message =
    issue.code === 'unrecognized_keys'
      ? `unknown key ${issue.keys.map((key) => JSON.stringify(at === '' ? key : `${at}.${key}`)).join(', ')}; allowed are ${allowedAt(issue.path)}`
      : `${at === '' ? 'it' : JSON.stringify(at)} must be ${
          issue.code === 'invalid_type' && issue.expected === 'object'
            ? `keys and values; allowed are ${allowedAt(issue.path)}`
            : issue.message
        }`
  throw new CkptError('CONFIG', `${name}: ${message}. Nothing was changed.`, { hints: [mend] })
}

function allowedAt(path: readonly PropertyKey[]): string {
  let schema: z.ZodType = configSchema
  for (const key of path) {
    if (schema instanceof z.ZodOptional) schema = schema.unwrap() as z.ZodType
    if (schema instanceof z.ZodObject) schema = schema.shape[String(key)] as z.ZodType
  }
  if (schema instanceof z.ZodOptional) schema = schema.unwrap() as z.ZodType
  return schema instanceof z.ZodObject
    ? Object.keys(schema.shape)
        .filter((key) => key !== '$schema')
        .join(', ')
    : 'none'
}
