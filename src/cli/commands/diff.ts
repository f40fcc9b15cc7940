import { CkptError } from '../../core/errors.ts'
import { quoted } from '../../core/hint-words.ts'
import { shown } from '../../core/paths.ts'
import { changedTexts, diff, diffUncommitted, uncommittedTexts } from '../../ops/history/diff.ts'
import { openForReading } from '../../ops/recovery/reading.ts'
import { closeContext } from '../../ops/worktree/context.ts'
import { diffJson } from '../../results/json.ts'
import { ITS_HELP } from '../again.ts'
import { exclusive, flag, givenPaths, target, text, worktreePaths } from '../arguments.ts'
import type { Arguments, Command } from '../command.ts'
import { checkpointsText, diffFilesText, patchText } from '../present/changes.ts'

const command: Command = async ({ env, args, cwd, colors, backends }) => {
  exclusive(args, ['stat', 'name-only', 'word'])
  exclusive(args, ['uncommitted', 'session'])
  const [a, b] = [state(args, 'a'), state(args, 'b')]
  if (flag(args, 'uncommitted') && a !== undefined)
    throw new CkptError('USAGE', '--uncommitted compares with HEAD, and takes no id. Nothing was read.', {
      hints: [ITS_HELP],
    })
  const given = givenPaths(args['--'])
  const context = await openForReading(env, cwd)
  try {
    const paths = worktreePaths(context, cwd, given).filter((path) => path !== '')
    const session = text(args, 'session')
    if (!flag(args, 'uncommitted')) await backends.require(context, session, ['supportsDiff'])
    const options = {
      ...(a === undefined ? {} : { a }),
      ...(b === undefined ? {} : { b }),
      ...(session === undefined ? {} : { session }),
      paths,
    }
    const result = flag(args, 'uncommitted') ? await diffUncommitted(context, paths) : await diff(context, options)
    const { files, checkpoints, warnings } = result
    const listed = flag(args, 'name-only') || flag(args, 'stat') ? undefined : checkpoints
    const json = diffJson(result, context.store)
    if (files.length === 0 && !listed) return { json, text: 'No differences.', warnings, isNone: true }
    let output: string
    if (flag(args, 'name-only')) output = files.map((file) => shown(file.path)).join('\n')
    else if (flag(args, 'stat')) output = diffFilesText(files, colors)
    else if (flag(args, 'word')) {
      const { fileWordsText } = await import('../present/words.ts')
      const isUncommitted = flag(args, 'uncommitted')
      const texts = await (isUncommitted ? uncommittedTexts(context, paths) : changedTexts(context, options))
      output = texts.map((one) => fileWordsText(one, colors)).join('\n')
    } else output = patchText(result, { c: colors, raw: !env.stdout.isTTY })
    const above = listed ? [checkpointsText(listed, { c: colors, now: env.now() })] : []
    return { json, text: [...above, output].filter((part) => part !== '').join('\n\n'), warnings, paged: true }
  } finally {
    closeContext(context)
  }
}

/** A path that stands where an id does. @throws CkptError USAGE */
function state(args: Arguments, name: string): string | undefined {
  try {
    return target(args, name)
  } catch (error) {
    const word = args[name]
    if (!(error instanceof CkptError) || typeof word !== 'string' || word === '') throw error
    const hints = [`ckpt diff -- ${quoted(word)}   (if it is a file or a directory)`, ...error.hints]
    throw new CkptError(error.code, error.message, { hints, cause: error })
  }
}

export default command
