/** Gemini CLI: payloads of 0.61.0 as they arrived. Claude Code's shape, other names, time-outs in milliseconds. */
import * as z from 'zod/mini'
import type { Marker } from '../core/marker.ts'
import { type Agent, type Heard, type HearOptions, type Places, SCOPES, type Scope } from './agent.ts'
import { commandsInGroup, hookGroup } from './hook-group.ts'
import { digest, hookFields, id, markerId, markersOf, pathsIn, promptKind, promptText, understood } from './payload.ts'
import { settingThatIs } from './settings.ts'
import { contextFor } from './tell-undone.ts'

const schema = z.looseObject({ ...hookFields, timestamp: id })
type Payload = z.output<typeof schema>

// Not PreCompress: it fires before every request to the model, and nothing is compressed.
const EVENTS = ['SessionStart', 'BeforeAgent', 'BeforeTool', 'AfterTool', 'AfterAgent', 'SessionEnd'] as const

/** Tools that change no file of the worktree; some wait for the person. Of an agent within, its own calls are the steps. */
const READERS = new Set([
  'activate_skill',
  'ask_user',
  'complete_task',
  'enter_plan_mode',
  'exit_plan_mode',
  'get_internal_docs',
  'glob',
  'google_web_search',
  'grep_search',
  'invoke_agent',
  'list_background_processes',
  'list_directory',
  'list_mcp_resources',
  'read_background_output',
  'read_file',
  'read_many_files',
  'read_mcp_resource',
  'search_file_content',
  'update_topic',
  'web_fetch',
  'write_todos',
])

const TIMEOUT = 25_000

function hear(payload: unknown, { event }: HearOptions): Heard {
  const one = understood(schema, payload, event)
  return {
    markers: markers(one),
    ...(one.cwd ? { cwd: one.cwd } : {}),
    ...(one.hook_event_name === 'SessionEnd' ? { ended: markersOf(one.session_id).session } : {}),
  }
}

function markers(one: Payload): Marker[] {
  const make = markersOf(one.session_id)
  const { tool_name, hook_event_name, timestamp } = one
  // There is no turn's id and no call's: the session and the moment tell one payload from the next, and what a call is to
  // do, for several of one tool may end in one millisecond.
  const marker = markerId(
    'gemini',
    one.session_id,
    hook_event_name,
    timestamp,
    tool_name ?? '-',
    digest(one.tool_input),
  )
  const step = {
    ...(tool_name === undefined ? {} : { tool: tool_name }),
    paths: pathsIn(one.tool_input, ['file_path', 'absolute_path']),
    marker,
  }
  switch (hook_event_name) {
    case 'BeforeAgent':
      return [
        make.prompt({
          agent: 'gemini',
          kind: promptKind(one.prompt),
          text: promptText(one.prompt),
          messageId: markerId(one.session_id, timestamp),
          marker,
        }),
      ]
    case 'BeforeTool':
      return READERS.has(tool_name ?? '') ? [] : [make.step({ ...step, start: true })]
    case 'AfterTool':
      return READERS.has(tool_name ?? '') ? [] : [make.step(step)]
    case 'AfterAgent':
      return [make.stop({ status: 'completed', marker })]
    case 'SessionEnd':
      return [make.stop({ status: 'interrupted', onlyRunning: true })]
    default:
      return []
  }
}

function file(scope: Scope, { home, root }: Places): string | null {
  if (scope === 'local') return null
  return `${scope === 'user' ? home : root}/.gemini/settings.json`
}

export const gemini: Agent = {
  name: 'gemini',
  title: 'Gemini CLI',
  hear,
  timeout: () => TIMEOUT,
  goBack: () => 'in Gemini CLI, /rewind to before that prompt',
  switchedOff: (env, places) => {
    const files = SCOPES.flatMap((scope) => file(scope, places) ?? [])
    return settingThatIs(env, files, { keys: [['hooksConfig', 'enabled']], wanted: false })
  },
  inform: contextFor('BeforeAgent'),
  settings: {
    kind: 'hooks',
    file,
    entries: (command) =>
      EVENTS.map((event) => ({
        event,
        entry: hookGroup(command(event), {
          ...(/Tool$/.test(event) ? { matcher: '*' } : {}),
          name: 'ckpt',
          timeout: TIMEOUT,
        }),
      })),
    commandsOf: commandsInGroup,
  },
  signs: ({ home }) => [`${home}/.gemini`],
  covers:
    'prompts, tool calls that may write, shell edits; an interrupt or an API error is inferred at the next prompt',
}
