/** Reading payloads: forgiving in everything but what a marker cannot do without. */

import { createHash } from 'node:crypto'
import * as z from 'zod/mini'
import { defined } from '../core/defined.ts'
import { CkptError } from '../core/errors.ts'
import { parseSessionId, type SessionId } from '../core/ids.ts'
import type { Marker, PromptMarker, StepMarker, StopMarker } from '../core/marker.ts'

/** Characters of an id, and of a path: longer ones are cut, or passed over. */
const LONGEST_ID = 1024
const LONGEST_PATH = 4096
const MOST_PATHS = 1000

/** A field that may be missing, or be something else: then it is as good as missing. */
export const maybe = <T extends z.ZodMiniType>(schema: T) => z.catch(z.optional(schema), undefined)

export const text = maybe(z.string())
export const id = maybe(
  z.pipe(
    z.string().check(z.minLength(1)),
    z.transform((value: string) => value.slice(0, LONGEST_ID)),
  ),
)
export const anything = z.optional(z.unknown())

/** The fields that Claude Code, and the agents that took their hooks from it, send with every event. */
export const hookFields = {
  session_id: z.string(),
  hook_event_name: id,
  cwd: text,
  prompt: anything,
  tool_name: id,
  tool_input: anything,
  tool_use_id: id,
  source: id,
}

/** `event`: its name, where the payload lacks it. @throws CkptError BAD_MARKER */
export function understood<T extends z.ZodMiniType>(schema: T, payload: unknown, event?: string): z.output<T> {
  const isNamed = typeof payload !== 'object' || payload === null || 'hook_event_name' in payload
  const parsed = schema.safeParse(isNamed || event === undefined ? payload : { ...payload, hook_event_name: event })
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw new CkptError(
    'BAD_MARKER',
    `The payload is not understood: ${issue?.path.join('.') || 'its whole'}: ${issue?.message ?? 'unknown'}.`,
  )
}

/** Of what a call is to do: its id alone may come again, with each message of some models. */
export const digest = (input: unknown): string =>
  createHash('sha256')
    .update(JSON.stringify(input) ?? '')
    .digest('hex')
    .slice(0, 12)

/** A prompt as text: content blocks stay JSON, of which the first with text describes the turn. */
export function promptText(prompt: unknown): string | undefined {
  if (prompt === undefined || prompt === null) return undefined
  return typeof prompt === 'string' ? prompt : JSON.stringify(prompt)
}

/** A line that is a command of the agent's own, not words for the model. */
export function promptKind(prompt: unknown): PromptMarker['kind'] {
  return typeof prompt === 'string' && /^\/[a-z][\w:-]*(\s|$)/.test(prompt) ? 'command' : 'prompt'
}

/** The paths among the values of a tool's input. */
export function pathsIn(input: unknown, names: readonly string[]): string[] {
  if (typeof input !== 'object' || input === null) return []
  const values = names.map((name) => (input as Record<string, unknown>)[name])
  return usablePaths(values.filter((value) => typeof value === 'string'))
}

/** The files that a patch of the `apply_patch` form names. */
export function patchedFiles(patch: string): string[] {
  const headers = /^\*\*\* (?:Add File|Update File|Delete File|Move to): ([^\r\n]+)$/gm
  return [...patch.matchAll(headers)].map((match) => match[1]!.trim())
}

export function usablePaths(paths: readonly string[]): string[] {
  return [...new Set(paths)]
    .filter((path) => path !== '' && path.length <= LONGEST_PATH && !path.includes('\0'))
    .slice(0, MOST_PATHS)
}

type Fields<M extends Marker> = { [K in keyof Omit<M, 'event' | 'session'>]?: M[K] | undefined }

/** Makes the markers of one session. @throws CkptError BAD_MARKER for an id that cannot be a session's */
export function markersOf(given: string) {
  const session: SessionId = parseSessionId(given)
  return {
    session,
    prompt: (fields: Fields<PromptMarker>) => defined({ event: 'prompt', session, ...fields }) as PromptMarker,
    step: (fields: Fields<StepMarker>) => defined({ event: 'step', session, ...fields }) as StepMarker,
    stop: (fields: Fields<StopMarker>) => defined({ event: 'stop', session, ...fields }) as StopMarker,
  }
}

/** A marker's id: the same payload again, from a retry, is the same marker. */
export function markerId(...parts: (string | undefined)[]): string | undefined {
  return parts.every((part) => part !== undefined && part !== '') ? parts.join(':').slice(0, LONGEST_ID) : undefined
}
