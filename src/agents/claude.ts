/** Claude Code: https://code.claude.com/docs/en/hooks, and payloads of 2.1.197 and 2.1.330 as they arrived. */
import * as z from 'zod/mini'
import type { Marker } from '../core/marker.ts'
import type { Env } from '../env.ts'
import { type Agent, type Heard, type HearOptions, type Places, SCOPES, type Scope, type SwitchedOff } from './agent.ts'
import { ClaudeTranscript, COPIED, forkedFromIn, noticeIn } from './claude-transcript.ts'
import { commandsInGroup, hookGroup } from './hook-group.ts'
import {
  digest,
  hookFields,
  id,
  markerId,
  markersOf,
  maybe,
  pathsIn,
  promptKind,
  promptText,
  text,
  understood,
} from './payload.ts'
import { settingThatIs } from './settings.ts'
import { contextFor } from './tell-undone.ts'

const schema = z.looseObject({
  ...hookFields,
  prompt_id: id,
  transcript_path: text,
  agent_id: id,
  trigger: id,
  is_interrupt: maybe(z.boolean()),
  background_tasks: maybe(z.array(maybe(z.looseObject({ type: id })))),
  tool_response: maybe(z.looseObject({ status: id })),
})
type Payload = z.output<typeof schema>

/** Readers that an agent calls again and again: it need not start a hook for them. */
const READS_OFTEN = ['Glob', 'Grep', 'LS', 'Read', 'TodoWrite', 'WebFetch', 'WebSearch']

/** Tools that change no file of the worktree. A subagent is none either: its own calls are steps. */
const READERS = new Set([
  ...READS_OFTEN,
  'Agent',
  'AskUserQuestion',
  'BashOutput',
  'CronCreate',
  'CronDelete',
  'CronList',
  'EnterPlanMode',
  'ExitPlanMode',
  'ListAgents',
  'ListMcpResources',
  'NotebookRead',
  'ReadMcpResource',
  'ReportFindings',
  'ScheduleWakeup',
  'SendMessage',
  'Task',
  'TaskCreate',
  'TaskGet',
  'TaskList',
  'TaskOutput',
  'TaskStop',
  'TaskUpdate',
  'TodoRead',
  'ToolSearch',
])

/** A regular expression, as it holds more than names (2.1.197). */
const MATCHER = `^(?!(${READS_OFTEN.join('|')})$)`

const EVENTS = [
  'SessionStart',
  'UserPromptSubmit',
  'PreToolUse',
  'PostToolUse',
  'PostToolUseFailure',
  'PreCompact',
  'Stop',
  'StopFailure',
  'SessionEnd',
] as const

/** Seconds. A session's end waits 1.5 s for all its hooks, whatever they ask for. */
const TIMEOUT = 25
const END_TIMEOUT = 1.5

function hear(payload: unknown, { event, vars }: HearOptions): Heard {
  const one = understood(schema, payload, event)
  const project = vars.CLAUDE_PROJECT_DIR
  return {
    markers: markers(one),
    ...(one.cwd ? { cwd: one.cwd } : {}),
    ...(project ? { project } : {}),
    ...(one.hook_event_name === 'SessionStart' && one.source
      ? { started: { session: markersOf(one.session_id).session, source: one.source } }
      : {}),
    ...(one.hook_event_name === 'SessionEnd' ? { ended: markersOf(one.session_id).session } : {}),
    // A compaction comes with the id of its own command, or of the last prompt: it is no prompt's line.
    ...(one.transcript_path && one.prompt_id && one.hook_event_name !== 'PreCompact'
      ? { transcript: { path: one.transcript_path, turn: one.prompt_id } }
      : {}),
  }
}

function markers(one: Payload): Marker[] {
  const make = markersOf(one.session_id)
  const { prompt_id, tool_use_id, tool_name } = one
  const turn = markerId('claude', prompt_id)
  const compaction = markerId(turn, 'compact')
  const call = markerId('claude', prompt_id ?? one.session_id, tool_use_id, digest(one.tool_input))
  const said = promptText(one.prompt)
  const notice = noticeIn(said ?? '')
  const step = {
    ...(tool_name === undefined ? {} : { tool: tool_name }),
    callId: tool_use_id,
    paths: pathsIn(one.tool_input, ['file_path', 'notebook_path']),
    turn,
    ...(one.agent_id === undefined ? {} : { subagent: true }),
  }
  switch (one.hook_event_name) {
    case 'UserPromptSubmit':
      // A subagent's own prompts and stops are no turns.
      if (one.agent_id !== undefined) return []
      return [
        make.prompt({
          agent: 'claude',
          kind: promptKind(one.prompt),
          text: notice ?? said,
          ...(notice === null ? {} : { notice: true }),
          messageId: prompt_id,
          marker: turn,
        }),
      ]
    case 'PreToolUse':
      if (READERS.has(tool_name ?? '')) return []
      return [make.step({ ...step, start: true, marker: markerId(call, 'start') })]
    case 'PostToolUse':
    case 'PostToolUseFailure':
      if (READERS.has(tool_name ?? '')) return []
      // A skill that ran as a subagent. Only its end says so: without it, it claims nothing beside that one's calls.
      if (tool_name === 'Skill' && one.tool_response?.status === 'forked') return []
      return [make.step({ ...step, marker: markerId(call, 'end') })]
    case 'Stop':
      return one.agent_id === undefined
        ? [make.stop({ status: 'completed', background: inBackground(one), turn, marker: markerId(turn, 'stop') })]
        : []
    case 'StopFailure':
      return one.agent_id === undefined ? [make.stop({ status: 'failed', turn, marker: markerId(turn, 'stop') })] : []
    case 'SessionEnd':
      return [make.stop({ status: 'interrupted', background: 0, onlyRunning: true })]
    case 'PreCompact':
      // Asked for by the person, it is a turn without work; the agent's own is part of the turn that runs.
      if (one.trigger !== 'manual') return []
      return [
        make.prompt({ agent: 'claude', kind: 'compaction', text: '/compact', marker: compaction }),
        make.stop({ onlyRunning: true, marker: markerId(compaction, 'stop') }),
      ]
    default:
      return []
  }
}

/** Agents that go on in the background. A command there is none: a server may run for ever. */
const inBackground = ({ background_tasks: tasks = [] }: Payload): number =>
  tasks.filter((task) => /^(subagent|workflow)$/.test(task?.type ?? '')).length

/** The transcript line of a prompt. */
function messageIdIn(lines: readonly string[], turn: string): string | null {
  const reader = new ClaudeTranscript()
  reader.add(`${lines.join('\n')}\n`)
  const said = reader.prompts.findLast(({ ids }) => ids.includes(turn))
  return said && !said.notice ? said.messageId : null
}

const configDirectory = ({ home, vars }: Omit<Places, 'root'>) => vars.CLAUDE_CONFIG_DIR || `${home}/.claude`

function file(scope: Scope, places: Places): string {
  if (scope === 'user') return `${configDirectory(places)}/settings.json`
  return `${places.root}/.claude/settings${scope === 'local' ? '.local' : ''}.json`
}

/** `disableAllHooks` in any of its files; `allowManagedHooksOnly` of whoever manages the machine. */
function switchedOff(env: Env, places: Places): SwitchedOff | null {
  const files = [...SCOPES.map((scope) => file(scope, places)), '/etc/claude-code/managed-settings.json']
  return settingThatIs(env, files, { keys: [['disableAllHooks'], ['allowManagedHooksOnly']] })
}

/** Characters of a place in its directory's name; of a longer one a hash follows them (2.1.330). */
const LONGEST_NAME = 200

const seconds = (event: string | undefined) => (event === 'SessionEnd' ? END_TIMEOUT : TIMEOUT)

export const claude: Agent = {
  name: 'claude',
  title: 'Claude Code',
  hear,
  timeout: (event) => seconds(event) * 1000,
  messageIdIn,
  forkedFromIn: { words: COPIED, session: forkedFromIn },
  switchedOff,
  forks: true,
  transcripts: {
    directory: (places) => `${configDirectory(places)}/projects`,
    prefix: (root) => root.replaceAll(/[^A-Za-z0-9]/g, '-').slice(0, LONGEST_NAME),
    reader: () => new ClaudeTranscript(),
  },
  goBack: ({ session }) =>
    `in Claude Code, /rewind (or Esc twice) to before that prompt; in a conversation of its own: claude --resume ${session} --fork-session`,
  inform: contextFor('UserPromptSubmit'),
  settings: {
    kind: 'hooks',
    file,
    entries: (command) =>
      EVENTS.map((event) => ({
        event,
        entry: hookGroup(command(event), {
          ...(/ToolUse/.test(event) ? { matcher: MATCHER } : {}),
          ...(event === 'SessionEnd' ? {} : { timeout: TIMEOUT }),
        }),
      })),
    commandsOf: commandsInGroup,
  },
  signs: (places) => [configDirectory(places)],
  covers:
    'prompts, tool calls that may write, shell edits, subagents, API errors; an interrupt is inferred at the next prompt',
}
