import { CkptError } from '../../core/errors.ts'
import { printable } from '../../core/paths.ts'
import { VERSION } from '../../core/version.ts'
import { byNode, daemonStatus, logFile, startDaemon, stopDaemon } from '../../daemon/life.ts'
import { readIfThere } from '../../git/whole-file.ts'
import { closeContext, openContext } from '../../ops/worktree/context.ts'
import type { Command } from '../command.ts'
import { plural } from '../present/text.ts'

const ACTIONS = ['start', 'stop', 'status', 'logs'] as const

/** One that ran all the same would do nothing, for those too who have not switched it off. */
export const NOT_STARTED = 'CKPT_DISABLED is set: nothing was started.'

const KILLED =
  'It did not end by itself and was killed. What was recorded is kept; what it was doing the next command finishes or takes back.'

/** Lines of the log that are shown. */
const LINES = 50

const command: Command = async ({ env, args, cwd }) => {
  const action = String(args.action)
  if (!ACTIONS.includes(action as (typeof ACTIONS)[number])) {
    throw new CkptError(
      'USAGE',
      `\`ckpt daemon\` can ${ACTIONS.join(', ')}, not ${JSON.stringify(action)}. Nothing was changed.`,
      { hints: ['ckpt daemon --help'] },
    )
  }
  const context = await openContext(env, cwd, {
    create: action === 'start' && env.vars.CKPT_DISABLED !== '1',
    reading: action !== 'start',
  })
  const { worktreeDir } = context.store
  try {
    if (action === 'start' && env.vars.CKPT_DISABLED === '1') {
      const { running, pid } = await daemonStatus(env, worktreeDir)
      return { json: { started: false, pid, running }, text: NOT_STARTED }
    }
    if (action === 'start') {
      const { started, info } = await startDaemon(context, { command: byNode(env, env.program), version: VERSION })
      const { state } = await daemonStatus(env, worktreeDir)
      const why = state?.watching === false ? state.why : null
      const does = why === null ? 'watches' : 'is at work in'
      const text = started
        ? `The daemon ${does} ${printable(info.root)} (process ${info.pid}).`
        : `A daemon is at work here already (process ${info.pid}).`
      const warnings = why === null ? [] : [`It does not watch, and each snapshot is a scan: ${printable(why)}.`]
      return { json: { started, pid: info.pid, running: true, warnings }, text, warnings }
    }
    if (action === 'stop') {
      const stopped = await stopDaemon(env, worktreeDir)
      const warnings = stopped === 'killed' ? [KILLED] : []
      return {
        json: { stopped: stopped !== null, running: false, warnings },
        text: stopped ? 'The daemon has stopped.' : 'No daemon is running here.',
        warnings,
      }
    }
    if (action === 'logs') {
      const log = readIfThere(env, logFile(worktreeDir))?.toString('utf8') ?? ''
      const lines = log === '' ? [] : log.trimEnd().split('\n').slice(-LINES)
      return {
        json: { path: logFile(worktreeDir), lines },
        ...(log === ''
          ? { text: 'No log yet.', isNone: true }
          : { text: lines.map(printable).join('\n'), paged: true }),
      }
    }
    const { running, pid, watching, state, over, barred } = await daemonStatus(env, worktreeDir)
    const how = state
      ? state.why === null
        ? 'snapshots are fast'
        : `the next snapshot is a scan: ${state.why}`
      : barred === null
        ? 'it does not answer'
        : `it cannot be asked from here (${barred})`
    const other =
      state && state.version !== VERSION
        ? `\nIt is of version ${state.version}, and this is ${VERSION}: commands do their own work. The one of this version: ckpt daemon start`
        : ''
    const watches = watching
      ? `, watching ${plural(state?.watched ?? 0, 'directory', 'directories')}`
      : ', not watching'
    const text = over
      ? `Running (process ${pid}), not watching. ${over}`
      : running
        ? `Running (process ${pid})${barred === null ? watches : ''}; ${how}.${other}`
        : 'Not running. Every command works without it; start it: ckpt daemon start'
    return { json: { running, pid, watching, state }, text, paged: true }
  } finally {
    closeContext(context)
  }
}

export default command
