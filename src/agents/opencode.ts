/** OpenCode: events of 1.18.33, as they arrived; sent by the plugin that we ship. */
import * as z from 'zod/mini'
import type { Marker } from '../core/marker.ts'
import type { Agent, Heard, HearOptions, Places, Scope } from './agent.ts'
import {
  anything,
  id,
  markerId,
  markersOf,
  maybe,
  patchedFiles,
  pathsIn,
  promptText,
  understood,
  usablePaths,
} from './payload.ts'

const schema = z.looseObject({
  hook_event_name: id,
  /** Where the agent works: added by the plugin. */
  directory: id,
  input: maybe(z.looseObject({ sessionID: id, tool: id, callID: id, call: id, args: anything })),
  output: maybe(
    z.looseObject({
      args: anything,
      message: maybe(z.looseObject({ id, sessionID: id })),
      parts: maybe(z.array(z.unknown())),
    }),
  ),
  properties: maybe(
    z.looseObject({
      sessionID: id,
      error: maybe(z.looseObject({ name: id })),
      info: maybe(z.looseObject({ id, parentID: id, directory: id })),
    }),
  ),
})
type Payload = z.output<typeof schema>

const textPart = z.looseObject({ type: z.literal('text'), text: z.string(), synthetic: z.optional(z.literal(false)) })

const HEARD = new Set(['chat.message', 'tool.execute.before', 'tool.execute.after', 'session.error', 'session.idle'])

/** Tools that change no file of the worktree; some wait for the person. A `task` is a subagent: its own calls are the steps. */
const READERS = new Set([
  'codesearch',
  'glob',
  'grep',
  'list',
  'lsp',
  'plan_enter',
  'plan_exit',
  'question',
  'read',
  'skill',
  'task',
  'todoread',
  'todowrite',
  'webfetch',
  'websearch',
])

const GOES_ON = 'ContextOverflowError'

/** Milliseconds for which the plugin waits. */
const TIMEOUT = 25_000

function hear(payload: unknown, { event }: HearOptions): Heard {
  const one = understood(schema, payload, event)
  const name = one.hook_event_name
  const cwd = one.directory ?? one.properties?.info?.directory
  const where = cwd === undefined ? {} : { cwd }
  const { info } = one.properties ?? {}
  if (name !== 'session.created') return { markers: markers(one, name), ...where }
  if (!info?.id || !info.parentID) return { markers: [], ...where }
  const [session, parent] = [markersOf(info.id).session, markersOf(info.parentID).session]
  return { markers: [], started: { session, source: 'child', parent }, ...where }
}

function markers(one: Payload, event: string | undefined): Marker[] {
  const session = one.input?.sessionID ?? one.properties?.sessionID ?? one.output?.message?.sessionID
  if (event === undefined || !HEARD.has(event)) return []
  if (event === 'session.error' && session === undefined) return [] // it is of no session
  const make = markersOf(session ?? '')
  const { tool, callID, call = callID } = one.input ?? {}
  const args = one.input?.args ?? one.output?.args
  const step = {
    ...(tool === undefined ? {} : { tool }),
    callId: call, // the model's own may be another call's, too: of a subagent at work at the same time, say
    paths: [...pathsIn(args, ['filePath']), ...patchedPaths(args)],
  }
  switch (event) {
    case 'chat.message': {
      const messageId = one.output?.message?.id
      const text = promptText(spoken(one.output?.parts ?? []))
      return [make.prompt({ agent: 'opencode', text, messageId, marker: markerId('opencode', messageId) })]
    }
    case 'tool.execute.before':
      if (READERS.has(tool ?? '')) return []
      return [make.step({ ...step, start: true, marker: markerId('opencode', call, 'start') })]
    case 'tool.execute.after':
      if (READERS.has(tool ?? '')) return []
      return [make.step({ ...step, marker: markerId('opencode', call, 'end') })]
    case 'session.error':
      // It makes its context smaller, and goes on with the turn.
      if (one.properties?.error?.name === GOES_ON) return []
      return [
        make.stop({
          status: one.properties?.error?.name === 'MessageAbortedError' ? 'interrupted' : 'failed',
          onlyRunning: true,
        }),
      ]
    case 'session.idle':
      // It comes twice, and after an error too.
      return [make.stop({ status: 'completed', onlyRunning: true })]
    default:
      return []
  }
}

/** `opencode run` wraps the whole prompt in quotes. */
function spoken(parts: readonly unknown[]): string | undefined {
  const said = parts.flatMap((part) => {
    const parsed = textPart.safeParse(part)
    return parsed.success ? [parsed.data.text] : []
  })
  if (said.length === 0) return undefined
  const whole = said.join('\n')
  return /^"[^"]*"\s*$/.test(whole) ? whole.trim().slice(1, -1) : whole
}

function patchedPaths(args: unknown): string[] {
  const patch = z.looseObject({ patchText: z.string() }).safeParse(args)
  if (!patch.success) return []
  return usablePaths(patchedFiles(patch.data.patchText))
}

const configDirectory = ({ home, vars }: Omit<Places, 'root'>) =>
  `${vars.XDG_CONFIG_HOME || `${home}/.config`}/opencode`

function file(scope: Scope, places: Places): string | null {
  if (scope === 'local') return null
  return scope === 'user' ? `${configDirectory(places)}/plugin/ckpt.js` : `${places.root}/.opencode/plugin/ckpt.js`
}

export const opencode: Agent = {
  name: 'opencode',
  title: 'OpenCode',
  hear,
  children: true,
  timeout: () => TIMEOUT,
  goBack: () => 'in OpenCode, /undo (it takes back what its own snapshots know of the files, too)',
  settings: { kind: 'plugin', file, source: 'plugins/opencode.js' },
  signs: (places) => [configDirectory(places)],
  covers: 'prompts, tool calls that may write, shell edits, subagents, interrupts, API errors',
}
