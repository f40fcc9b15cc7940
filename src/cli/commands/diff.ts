import { closeContext } from '../../ops/context.ts'
import { diff } from '../../ops/history.ts'
import { openForReading } from '../../ops/reading.ts'
import { exclusive, flag, text, worktreePaths } from '../arguments.ts'
import type { Command } from '../command.ts'
import { fileDiffJson } from '../present/json.ts'
import { diffFilesText, patchText, shown } from '../present/text.ts'

const command: Command = async ({ env, args, cwd, colors }) => {
  exclusive(args, ['stat', 'name-only'])
  const context = await openForReading(env, cwd)
  try {
    const paths = worktreePaths(context, cwd, args['--'] ?? []).filter((path) => path !== '')
    const session = text(args, 'session')
    const result = await diff(context, {
      ...(args.a === undefined ? {} : { a: String(args.a) }),
      ...(args.b === undefined ? {} : { b: String(args.b) }),
      ...(session === undefined ? {} : { session }),
      paths,
    })
    const { from, to, files, patch, warnings } = result
    const shownText = flag(args, 'name-only')
      ? files.map((file) => shown(file.path)).join('\n')
      : flag(args, 'stat')
        ? diffFilesText(files, colors)
        : patchText(result, colors)
    return { json: { from, to, files: files.map(fileDiffJson), patch, warnings }, text: shownText, warnings }
  } finally {
    closeContext(context)
  }
}

export default command
