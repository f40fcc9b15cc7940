import { bytesText, parseDuration, parseSize } from '../../config/units.ts'
import { CkptError } from '../../core/errors.ts'
import { printable } from '../../core/paths.ts'
import { tellPruned } from '../../daemon/life.ts'
import { prune, removedWords } from '../../ops/prune.ts'
import { closeContext, openContext } from '../../ops/worktree/context.ts'
import { count, flag, text } from '../arguments.ts'
import type { Arguments, Command } from '../command.ts'

function measure(
  args: Arguments,
  name: string,
  { parse, like }: { parse: (text: string) => number | null; like: string },
): number | undefined {
  const given = text(args, name)
  if (given === undefined) return undefined
  const value = parse(given)
  if (value === null) {
    throw new CkptError('USAGE', `--${name} wants ${like}, not ${JSON.stringify(given)}. Nothing was removed.`, {
      hints: ['ckpt prune --help'],
    })
  }
  return value
}

/** By itself it goes on to this share of the limit of bytes: not each turn is to be over it again. */
const BY_ITSELF = 0.9

const command: Command = async ({ env, args, cwd }) => {
  // By itself only what is past its grace goes, and what is over the limit of bytes.
  const idle = flag(args, 'idle')
  const olderThan = idle
    ? Number.POSITIVE_INFINITY
    : measure(args, 'older-than', { parse: parseDuration, like: 'an age like 30d' })
  const keep = idle ? 0 : count(args, 'keep')
  const maxBytes = measure(args, 'max-bytes', { parse: parseSize, like: 'a size like 500MiB' })
  const context = await openContext(env, cwd, { present: true })
  try {
    const { warnings } = context
    if (!context.exists) {
      return {
        json: { dryRun: flag(args, 'dry-run'), removed: [], byHand: [], bytesFreed: 0, kept: 0, warnings },
        text: 'Nothing was recorded here yet.',
        warnings,
      }
    }
    const result = await prune(context, {
      dryRun: flag(args, 'dry-run'),
      ...(keep === undefined ? {} : { keep }),
      ...(olderThan === undefined ? {} : { olderThan }),
      ...(maxBytes === undefined ? {} : { maxBytes }),
      ...(idle ? { downTo: BY_ITSELF } : {}),
    })
    const { dryRun, removed, byHand, bytesFreed, kept } = result
    await tellPruned(env, context.store.worktreeDir, result)
    const verb = dryRun ? 'Would remove' : 'Removed'
    const list = [
      ...removed.map(({ session, turn }) => `  turn ${turn} of ${printable(session)}`),
      ...byHand.map(({ checkpoint }) => `  checkpoint ${checkpoint.slice(0, 10)}`),
    ].slice(0, 20)
    const head =
      list.length === 0
        ? `No turn is past its time; ${kept} kept, ${bytesText(bytesFreed)} freed.`
        : `${verb} ${removedWords(result)}, ${bytesText(bytesFreed)}; ${kept} kept.`
    return {
      json: { dryRun, removed, byHand, bytesFreed, kept, warnings },
      text: [head, ...list].join('\n'),
      warnings,
      paged: dryRun,
    }
  } finally {
    closeContext(context)
  }
}

export default command
