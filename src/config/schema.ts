/** What a configuration file may hold (zod, loaded only when there is one). */
import { z } from 'zod'
import { CkptError } from '../core/errors.ts'
import type { PartialConfig } from './defaults.ts'

const units: Record<string, number> = {
  '': 1,
  b: 1,
  kib: 2 ** 10,
  kb: 1e3,
  mib: 2 ** 20,
  mb: 1e6,
  gib: 2 ** 30,
  gb: 1e9,
}
const times: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

const size = z
  .union(
    [z.number().int().nonnegative(), z.string().regex(/^\d+(\.\d+)?\s*([kmg]i?b|b)?$/i)],
    'a size in bytes, or like "10MiB"',
  )
  .transform((value) => {
    if (typeof value === 'number') return value
    const [, number, unit] = /^([\d.]+)\s*([a-z]*)$/i.exec(value)!
    return Math.round(Number(number) * units[unit!.toLowerCase()]!)
  })

const duration = z
  .union(
    [z.number().int().positive(), z.string().regex(/^\d+(\.\d+)?\s*(ms|s|m|h|d)$/)],
    'milliseconds, or a time like "20s"',
  )
  .transform((value) => {
    if (typeof value === 'number') return value
    const [, number, unit] = /^([\d.]+)\s*([a-z]+)$/.exec(value)!
    return Math.round(Number(number) * times[unit!]!)
  })

const patterns = z.array(z.string().min(1), 'a list of gitignore patterns')

export const configSchema = z.strictObject({
  enableFileCheckpointing: z.boolean('true or false').optional(),
  checkpointKeepCount: z.number('a whole number, 0 for no limit').int().nonnegative().optional(),
  snapshot: z
    .strictObject({
      include: patterns.optional(),
      exclude: patterns.optional(),
      maxFileSize: size.optional(),
      maxBytes: size.optional(),
      deadline: duration.optional(),
    })
    .optional(),
  store: z
    .strictObject({
      maxBytes: size.optional(),
      location: z.string('"git" or a directory').min(1).optional(),
    })
    .optional(),
})

/** @throws CkptError CONFIG that names the key, the file and what is allowed */
export function checkConfig(value: unknown, file: string): PartialConfig {
  const result = configSchema.safeParse(value)
  if (result.success) return result.data
  const issue = result.error.issues[0]!
  const at = issue.path.join('.')
  const message =
    issue.code === 'unrecognized_keys'
      ? `unknown key ${issue.keys.map((key) => JSON.stringify(at === '' ? key : `${at}.${key}`)).join(', ')}; allowed are ${allowedAt(issue.path)}`
      : `${at === '' ? 'it' : JSON.stringify(at)} must be ${issue.message}`
  throw new CkptError('CONFIG', `${file}: ${message}. Nothing was changed.`, { hints: [`edit ${file}`] })
}

function allowedAt(path: readonly PropertyKey[]): string {
  let schema: z.ZodType = configSchema
  for (const key of path) {
    if (schema instanceof z.ZodOptional) schema = schema.unwrap() as z.ZodType
    if (schema instanceof z.ZodObject) schema = schema.shape[String(key)] as z.ZodType
  }
  if (schema instanceof z.ZodOptional) schema = schema.unwrap() as z.ZodType
  return schema instanceof z.ZodObject ? Object.keys(schema.shape).join(', ') : 'none'
}
