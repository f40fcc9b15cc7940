/** ckpt's own checkpoints of an SDK session: its hooks, in this process, are heard as those of Claude Code's settings are. */
import { claude } from '../../agents/claude.ts'
import { deliver, type Progress } from '../../agents/deliver.ts'
import { within } from '../../agents/within.ts'
import type { Marker } from '../../core/marker.ts'
import type { Env } from '../../env.ts'
import type { KnownOptions } from './sdk.ts'

const EVENTS = [
  'SessionStart',
  'UserPromptSubmit',
  'PreToolUse',
  'PostToolUse',
  'PostToolUseFailure',
  'PreCompact',
  'Stop',
  'StopFailure',
] as const

/** Seconds that the agent waits for a checkpoint; milliseconds in which it is made. */
const TIMEOUT = 25
const DEADLINE = 20_000

export interface Recording {
  env: Env
  root: string
  /** The query was left: what its agent says from then on is about no turn that runs. */
  isOver: () => boolean
  /** Is given all that is recorded, until it is. */
  hearing: (work: Promise<object>) => Promise<object>
  /** The id of the prompt that is being taken up, and the session that this one was forked from. */
  prompt: (session: string, text: string) => Promise<{ messageId?: string; parent?: string }>
  /** The agent says that its turn is over. */
  stopped: () => void
  failed: (error: unknown) => void
}

/** The caller's own hooks run beside ours. */
export function withHooks(hooks: KnownOptions['hooks'], recording: Recording): NonNullable<KnownOptions['hooks']> {
  const all: NonNullable<KnownOptions['hooks']> = { ...hooks }
  for (const event of EVENTS) {
    const ours = {
      hooks: [async (input: unknown) => (recording.isOver() ? {} : recording.hearing(record(event, input, recording)))],
      timeout: TIMEOUT,
    }
    all[event] = [...(all[event] ?? []), ours]
  }
  return all
}

/** The agent goes on, whatever happens here. */
async function record(event: string, input: unknown, recording: Recording): Promise<object> {
  const { env, root } = recording
  try {
    const heard = claude.hear(input, { event, vars: { ...env.vars, CLAUDE_PROJECT_DIR: root } })
    const markers: Marker[] = []
    for (const marker of heard.markers) {
      const known = marker.event === 'prompt' ? await recording.prompt(marker.session, marker.text ?? '') : {}
      markers.push({ ...marker, ...known } as Marker)
    }
    const arrived = env.monotonic()
    const progress: Progress = { context: null, directory: null, open: [] }
    const heardHere = { ...heard, markers }
    // Who leaves the query waits for this.
    await within(
      deliver(env, { agent: claude, heard: heardHere, arrived, deadline: arrived + DEADLINE, progress }),
      TIMEOUT * 1000,
    )
    if (markers.some((marker) => marker.event === 'stop')) recording.stopped()
  } catch (error) {
    recording.failed(error)
  }
  return {}
}
