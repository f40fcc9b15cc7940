/** Cursor: from its documentation (https://cursor.com/docs/agent/hooks), not run. It says what was done, not what is about to be. */
import { createHash } from 'node:crypto'
import * as z from 'zod/mini'
import type { Marker } from '../core/marker.ts'
import type { Agent, Heard, HearOptions, Places, Scope } from './agent.ts'
import { anything, id, markerId, markersOf, maybe, promptText, text, understood, usablePaths } from './payload.ts'

const schema = z.looseObject({
  conversation_id: z.string(),
  generation_id: id,
  hook_event_name: id,
  workspace_roots: maybe(z.array(z.string())),
  prompt: anything,
  file_path: text,
  cwd: text,
  status: id,
})
type Payload = z.output<typeof schema>

// Not beforeShellExecution: its answer would grant or refuse the command, which is not ours to say.
const EVENTS = ['beforeSubmitPrompt', 'afterFileEdit', 'afterShellExecution', 'stop'] as const

const ENDS = { completed: 'completed', aborted: 'interrupted', error: 'failed' } as const

/** Roots of a workspace. */
const MOST_ROOTS = 20

/** Milliseconds; Cursor has no setting for it. */
const TIMEOUT = 25_000

function hear(payload: unknown, { event }: HearOptions): Heard {
  const one = understood(schema, payload, event)
  const [cwd = one.cwd, ...elsewhere] = placesOf(one)
  return { markers: markers(one, one.hook_event_name), ...(cwd ? { cwd, elsewhere } : {}) }
}

/** The workspace's roots that are told: of an edit those that the file lies in, of all else every one. */
function placesOf({ workspace_roots: roots = [], file_path: file }: Payload): string[] {
  const holding = roots.filter((root) => file?.startsWith(root.endsWith('/') ? root : `${root}/`))
  return (holding.length > 0 ? holding : roots).slice(0, MOST_ROOTS)
}

function markers(one: Payload, event: string | undefined): Marker[] {
  const make = markersOf(one.conversation_id)
  const turn = markerId('cursor', one.generation_id)
  // It has no ids for what was done: the hooks of two scopes are told the same.
  const digest = () => createHash('sha256').update(JSON.stringify(one)).digest('hex').slice(0, 32)
  const echo = () => markerId('cursor', event, digest())
  switch (event) {
    case 'beforeSubmitPrompt':
      return [
        make.prompt({ agent: 'cursor', text: promptText(one.prompt), messageId: one.generation_id, marker: turn }),
      ]
    case 'afterFileEdit':
      return [make.step({ tool: event, paths: usablePaths(one.file_path ? [one.file_path] : []), turn, echo: echo() })]
    case 'afterShellExecution':
      return [make.step({ tool: event, turn, echo: echo() })]
    case 'stop':
      return [make.stop({ status: endOf(one.status), turn, marker: markerId(turn, 'stop') })]
    default:
      return []
  }
}

const endOf = (status: string | undefined) =>
  status !== undefined && status in ENDS ? ENDS[status as keyof typeof ENDS] : 'completed'

function file(scope: Scope, { home, root }: Places): string | null {
  if (scope === 'local') return null
  return `${scope === 'user' ? home : root}/.cursor/hooks.json`
}

const entrySchema = z.looseObject({ command: z.string() })

export const cursor: Agent = {
  name: 'cursor',
  title: 'Cursor',
  hear,
  answer: (event) => (event === 'beforeSubmitPrompt' ? '{"continue":true}' : null),
  timeout: () => TIMEOUT,
  settings: {
    kind: 'hooks',
    file,
    skeleton: { version: 1 },
    entries: (command) => EVENTS.map((event) => ({ event, entry: { command: `${command(event)} ${event}` } })),
    commandsOf: (entry) => {
      const parsed = entrySchema.safeParse(entry)
      return parsed.success ? [parsed.data.command] : []
    },
  },
  signs: ({ home }) => [`${home}/.cursor`],
  covers: 'prompts, file edits and shell commands once they are done, interrupts; from its documentation, not run',
}
