import { defined } from '../../core/defined.ts'
import { CkptError } from '../../core/errors.ts'
import { parseSessionId } from '../../core/ids.ts'
import type { Marker } from '../../core/marker.ts'
import { startOnDemand } from '../../daemon/life.ts'
import { mark } from '../../ops/mark.ts'
import { closeContext, openContext } from '../../ops/worktree/context.ts'
import { markJson } from '../../results/json.ts'
import { givenPaths, oneOf, text, worktreePaths } from '../arguments.ts'
import type { Arguments, Command } from '../command.ts'
import { markText } from '../present/turns.ts'

const allowed = {
  prompt: ['kind', 'parent', 'agent', 'text'],
  step: ['start', 'tool', 'path', 'call-id'],
  stop: ['status'],
} as const

type Event = keyof typeof allowed

/** @throws CkptError BAD_MARKER for an option of another event */
function readEvent(args: Arguments): Event {
  const event = String(args.event)
  if (!Object.hasOwn(allowed, event)) {
    throw new CkptError(
      'BAD_MARKER',
      `A marker is prompt, step or stop, not ${JSON.stringify(event)}. Nothing was recorded.`,
      { hints: ['ckpt mark --help'] },
    )
  }
  for (const [other, names] of Object.entries(allowed)) {
    const strange = other === event ? undefined : names.find((name) => args[name] !== undefined)
    if (strange)
      throw new CkptError('BAD_MARKER', `--${strange} belongs to \`mark ${other}\`. Nothing was recorded.`, {
        hints: [`ckpt mark ${event} --help`],
      })
  }
  return event as Event
}

const command: Command = async ({ env, args, cwd, arrived }) => {
  const event = readEvent(args)
  const session = parseSessionId(text(args, 'session') ?? '')
  const common = defined({ session, messageId: text(args, 'message-id'), marker: text(args, 'marker') })
  const kind = oneOf(args, 'kind', ['prompt', 'command', 'shell', 'compaction'])
  const status = oneOf(args, 'status', ['completed', 'interrupted', 'failed'])
  const given = args.path === undefined ? undefined : givenPaths((args.path as string[]).map(String))
  const context = await openContext(env, cwd, { create: 'unless-off', present: event !== 'prompt', forgiving: true })
  try {
    const marker = {
      prompt: () => ({
        event,
        kind,
        parent: text(args, 'parent'),
        agent: text(args, 'agent'),
        text: args.text === undefined ? undefined : String(args.text),
      }),
      step: () => ({
        event,
        start: args.start === true ? true : undefined,
        tool: text(args, 'tool'),
        paths: given ? worktreePaths(context, cwd, given) : undefined,
        callId: text(args, 'call-id'),
      }),
      stop: () => ({ event, status }),
    }[event]()
    const result = await mark(context, { ...common, ...defined(marker) } as Marker, arrived)
    if (args.daemon) startOnDemand(context, result.directories)
    return { json: markJson(result, context.store.durable), text: markText(event, result), warnings: result.warnings }
  } finally {
    closeContext(context)
  }
}

export default command
