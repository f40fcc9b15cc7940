import { clipped } from '../../core/columns.ts'
import { CkptError, FIRST_TURN } from '../../core/errors.ts'
import { noneVisibleIn } from '../../core/none-visible.ts'
import { printable } from '../../core/paths.ts'
import type { Env } from '../../env.ts'
import { answered } from '../../library/answered.ts'
import { roomIn, screen } from '../../library/screen.ts'
import type { ChangeResult } from '../../ops/change/change.ts'
import { readToken } from '../../ops/change/read-token.ts'
import { type Way, type WayVerb, waysTo } from '../../ops/change/rewind.ts'
import { type ListResult, listTurns, type TurnView } from '../../ops/history/history.ts'
import { type Context, closeContext, openContext } from '../../ops/worktree/context.ts'
import { changeJson } from '../../results/json.ts'
import { text } from '../arguments.ts'
import type { Arguments, Colors, Command, Output } from '../command.ts'
import { changeText, filesText } from '../present/changes.ts'
import { plural } from '../present/text.ts'
import { turnLines } from '../present/turns.ts'
import { movesItsCursor } from '../streams.ts'
import { endIfHungUp, heedSignals } from '../terminal.ts'

/** Turns that are offered; older ones have `ckpt list` and `ckpt undo --to`. */
const OFFERED = 200

const NOTHING: Output = { json: { picked: null }, text: 'Nothing was changed.' }

const command: Command = async (call) => {
  const { env, args } = call
  const why = unasked(env, args)
  if (why !== null) {
    throw new CkptError('USAGE', `\`ckpt rewind\` asks, and ${why}. Nothing was changed.`, {
      hints: ['ckpt list', 'ckpt undo --to TURN --dry-run', 'ckpt restore TURN --dry-run'],
    })
  }
  const release = heedSignals(env)
  try {
    return await pickAndDo(call)
  } finally {
    release()
    endIfHungUp(env)
  }
}

/** Why nobody can be asked; null: somebody can. */
function unasked(env: Env, args: Arguments): string | null {
  if (args.json) return 'with --json nobody is asked'
  if (!env.stdin.isTTY || !env.stderr.isTTY) return 'there is no terminal to ask on'
  return movesItsCursor(env) ? null : 'this terminal cannot show a menu (TERM=dumb)'
}

async function pickAndDo({ env, args, cwd, colors, backends }: Parameters<Command>[0]): Promise<Output> {
  const ask = await asking(env, colors)
  const session = text(args, 'session')
  const within = async <T>(work: (context: Context) => Promise<T>): Promise<T> => {
    // Nothing is held while a person thinks.
    const context = await openContext(env, cwd, { create: true, forgiving: true })
    return work(context).finally(() => closeContext(context))
  }
  const list = await within((context) =>
    listTurns(context, { ...(session === undefined ? {} : { session }), hidden: true, limit: OFFERED }),
  )
  if (list.turns.length === 0) {
    const [why, hints] = list.timeline?.branches
      ? noneVisibleIn(list.timeline)
      : ['There is no turn here yet.', FIRST_TURN]
    throw new CkptError('NOTHING_TO_UNDO', `${why} Nothing was changed.`, { hints })
  }
  const view = await ask.turn(list, env.now())
  if (!view) return NOTHING
  const ways = await within((context) => waysTo(context, view.turn, backends))
  const way = await ask.way(view, ways)
  if (!way) return NOTHING
  if (way.plan instanceof CkptError) throw way.plan
  if (!(await ask.agreement(way.verb, way.plan))) return NOTHING
  const token = readToken(way.plan.token ?? '')
  const result = await within((context) => backends.apply(context, token, { arrived: env.monotonic() }))
  return { json: changeJson(result), text: changeText(way.verb, result, { colors }), warnings: result.warnings }
}

/** What each way does, in a person's words. */
function wayLabel(verb: WayVerb, { turn }: TurnView): string {
  switch (verb) {
    case 'undo':
      return `Undo: back to before turn ${turn.number}`
    case 'redo':
      return `Redo: up to the end of turn ${turn.number}`
    case 'restore':
      return `Files only: as turn ${turn.number} left them; no turn is undone`
  }
}

function wayHint({ plan }: Way): string {
  if (plan instanceof CkptError) return `refused: ${printable(plan.message)}`
  const conflicts = plan.files.filter(({ action }) => action === 'conflict').length
  const count = plan.files.length === 0 ? 'no files to change' : plural(plan.files.length, 'file')
  return conflicts > 0 ? `${count}, ${plural(conflicts, 'conflict')}` : count
}

/** The questions. The library for them is loaded only here. */
async function asking(env: Env, colors: Colors) {
  const { confirm, note, select } = await import('@clack/prompts')
  const streams = {
    input: env.stdin.stream,
    output: screen(env.stderr, { colors: colors.isColorSupported }),
  }
  const room = roomIn(env.stderr)
  const chosen = (message: string, options: { value: number; label: string; hint?: string }[]) =>
    answered(streams.input, (signal) => select<number>({ message, options, signal, ...streams }))
  const plain = (await import('picocolors')).default.createColors(false)
  return {
    turn: async ({ turns }: ListResult, now: number): Promise<TurnView | null> => {
      const lines = turnLines(turns, { c: plain, now, columns: room })
      const options = turns.map((_, value) => ({ value, label: clipped(lines[value]!, room) }))
      const value = await chosen('Which turn?', options)
      return value === null ? null : turns[value]!
    },
    way: async (view: TurnView, ways: readonly Way[]): Promise<Way | null> => {
      const options = ways.map((way, value) => ({
        value,
        label: wayLabel(way.verb, view),
        hint: wayHint(way),
      }))
      const value = await chosen('What is to happen?', options)
      return value === null ? null : ways[value]!
    },
    agreement: async (verb: WayVerb, plan: ChangeResult): Promise<boolean> => {
      const files = filesText(plan.files, colors).map((line) => line.trimStart())
      note(files.join('\n') || 'No files differ.', `Would ${verb}`, streams)
      if (plan.token === undefined || plan.files.some(({ action }) => action === 'conflict')) {
        throw new CkptError('CONFLICT', 'Files differ from what the turns left. Nothing was changed.', {
          hints: [`ckpt ${verb} --help   (--merge, --force, --skip-conflicts)`],
        })
      }
      const agreed = await answered(streams.input, (signal) =>
        confirm({ message: 'Do this?', initialValue: true, signal, ...streams }),
      )
      return agreed === true
    },
  }
}

export default command
