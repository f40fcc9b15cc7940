/** Codex: payloads of 0.169.0 as they arrived. Its hooks have Claude Code's shape; each has to be trusted once. */
import path from 'node:path'
import * as z from 'zod/mini'
import type { Marker } from '../core/marker.ts'
import type { Agent, Heard, HearOptions, Places, Scope } from './agent.ts'
import { commandsInGroup, hookGroup } from './hook-group.ts'
import {
  digest,
  hookFields,
  id,
  markerId,
  markersOf,
  patchedFiles,
  promptKind,
  promptText,
  understood,
  usablePaths,
} from './payload.ts'
import { contextFor } from './tell-undone.ts'

const schema = z.looseObject({ ...hookFields, turn_id: id, trigger: id, agent_id: id })
type Payload = z.output<typeof schema>

/** What `notify` sends: a fallback for hooks that are not trusted yet; it also fires for threads of Codex's own. */
const notified = z.looseObject({
  type: z.literal('agent-turn-complete'),
  'thread-id': z.string(),
  'turn-id': id,
  cwd: id,
})

const EVENTS = [
  'SessionStart',
  'UserPromptSubmit',
  'PreToolUse',
  'PostToolUse',
  'PreCompact',
  'Stop',
  'Interrupt',
  'SessionEnd',
] as const

/** Tools that change no file of the worktree; some wait for the person. */
const READERS = new Set([
  'create_goal',
  'get_goal',
  'grep_files',
  'list_dir',
  'read_file',
  'request_permissions',
  'request_user_input',
  'tool_search',
  'update_goal',
  'update_plan',
  'view_image',
  'web_search',
])

/** Seconds. More than three for an interrupt or a session's end are cut, and that is printed as an error. */
const TIMEOUT = 25
const SHORT_TIMEOUT = 3

function hear(payload: unknown, { event }: HearOptions): Heard {
  if (event === 'notify') {
    const one = understood(notified, payload)
    // Codex does not wait for it: the next turn may run by then.
    const turn = markerId('codex', one['turn-id'])
    const make = markersOf(one['thread-id'])
    const markers = [make.stop({ status: 'completed', onlyRunning: true, turn, marker: markerId(turn, 'stop') })]
    return { markers, ...(one.cwd ? { cwd: one.cwd } : {}) }
  }
  const one = understood(schema, payload, event)
  return {
    markers: markers(one),
    ...(one.cwd ? { cwd: one.cwd } : {}),
    ...(one.hook_event_name === 'SessionEnd' ? { ended: markersOf(one.session_id).session } : {}),
  }
}

function markers(one: Payload): Marker[] {
  const make = markersOf(one.session_id)
  const { turn_id, tool_use_id, tool_name } = one
  const turn = markerId('codex', turn_id)
  const compaction = markerId(turn, 'compact')
  const call = markerId('codex', turn_id ?? one.session_id, tool_use_id, digest(one.tool_input))
  const step = {
    ...(tool_name === undefined ? {} : { tool: tool_name }),
    callId: tool_use_id,
    paths: patchedPaths(tool_name, one.tool_input),
    turn,
  }
  switch (one.hook_event_name) {
    case 'UserPromptSubmit':
      if (one.agent_id !== undefined) return []
      return [
        make.prompt({
          agent: 'codex',
          kind: promptKind(one.prompt),
          text: promptText(one.prompt),
          messageId: turn_id,
          marker: turn,
        }),
      ]
    case 'PreToolUse':
      if (READERS.has(tool_name ?? '')) return []
      return [make.step({ ...step, start: true, marker: markerId(call, 'start') })]
    case 'PostToolUse':
      if (READERS.has(tool_name ?? '')) return []
      return [make.step({ ...step, marker: markerId(call, 'end') })]
    case 'Stop':
      return one.agent_id === undefined
        ? [make.stop({ status: 'completed', turn, marker: markerId(turn, 'stop') })]
        : []
    case 'Interrupt':
      return [make.stop({ status: 'interrupted', turn, marker: markerId(turn, 'stop') })]
    case 'SessionEnd':
      // After an API error this is all that comes.
      return [make.stop({ status: 'interrupted', onlyRunning: true })]
    case 'PreCompact':
      if (one.trigger !== 'manual') return []
      return [
        make.prompt({ agent: 'codex', kind: 'compaction', text: '/compact', marker: compaction }),
        make.stop({ onlyRunning: true, marker: markerId(compaction, 'stop') }),
      ]
    default:
      return []
  }
}

/** A patch that a shell command hands over: Codex applies it itself, and tells no end of that call. */
const SHELL_PATCH = /^\s*(?:cd\s+('[^']*'|"[^"]*"|[^\s'"]+)\s*&&\s*)?apply_?patch\s*<<\s*['"]?\w/

/** The files that the headers of a patch name. */
function patchedPaths(tool: string | undefined, input: unknown): string[] {
  const patch = z.looseObject({ command: z.string() }).safeParse(input)
  if (!patch.success) return []
  const { command } = patch.data
  const shell = tool === 'Bash' ? SHELL_PATCH.exec(command) : null
  if (tool !== 'apply_patch' && !shell) return []
  const directory = shell?.[1]?.replace(/^(['"])(.*)\1$/, '$2') ?? ''
  return usablePaths(patchedFiles(command).map((one) => (one.startsWith('/') ? one : path.posix.join(directory, one))))
}

const configDirectory = ({ home, vars }: Omit<Places, 'root'>) => vars.CODEX_HOME || `${home}/.codex`

function file(scope: Scope, places: Places): string | null {
  if (scope === 'local') return null
  return scope === 'user' ? `${configDirectory(places)}/hooks.json` : `${places.root}/.codex/hooks.json`
}

const seconds = (event: string | undefined) =>
  event === 'SessionEnd' || event === 'Interrupt' ? SHORT_TIMEOUT : TIMEOUT

export const codex: Agent = {
  name: 'codex',
  title: 'Codex',
  hear,
  timeout: (event) => seconds(event) * 1000,
  goBack: ({ session }) => `in Codex, Esc twice to that prompt; in a conversation of its own: codex fork ${session}`,
  inform: contextFor('UserPromptSubmit'),
  settings: {
    kind: 'hooks',
    file,
    entries: (command) =>
      EVENTS.map((event) => ({
        event,
        entry: hookGroup(command(event), {
          ...(/ToolUse/.test(event) ? { matcher: '*' } : {}),
          timeout: seconds(event),
        }),
      })),
    commandsOf: commandsInGroup,
  },
  signs: (places) => [configDirectory(places)],
  afterwards:
    'Codex passes over hooks that are not trusted, without a word: start it once and say yes to the hooks it shows, or: ckpt agent install codex --trust',
  trust: async (env, { root, give }) => (await import('./codex-trust.ts')).codexTrust(env, root, { give }),
  covers:
    'prompts, tool calls that may write, shell edits, interrupts; after an API error the end of the session closes the turn',
}
