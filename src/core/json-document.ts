import { UNPRINTABLE } from './paths.ts'

/**
 * What a command prints with `--json`: one line. No control character is in it as it is, be it in a name or a prompt: a
 * terminal may obey what JSON lets through (DEL, C1, bidirectional overrides). Read as JSON it is the same.
 */
export const jsonDocument = (fields: object): string =>
  `${JSON.stringify({ schemaVersion: 1, ...fields }).replace(UNPRINTABLE, escaped)}\n`

const escaped = (c: string): string => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`
