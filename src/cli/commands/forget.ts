import { shown, showPath } from '../../core/paths.ts'
import { forget } from '../../ops/forget.ts'
import { closeContext, openContext } from '../../ops/worktree/context.ts'
import { givenPaths, worktreePaths } from '../arguments.ts'
import type { Command } from '../command.ts'
import { plural } from '../present/text.ts'

const command: Command = async ({ env, args, cwd }) => {
  const given = givenPaths([String(args.path)])
  const context = await openContext(env, cwd, { create: true })
  try {
    const [path] = worktreePaths(context, cwd, given)
    const { replaced, blobs, warnings } = await forget(context, path!)
    const ids = replaced.map(([from, to]) => ({ from, to }))
    const rows = ids.map(({ from, to }) => `  ${from.slice(0, 10)} → ${to.slice(0, 10)}`)
    const head = `Forgot ${shown(path!)}: ${plural(replaced.length, 'checkpoint')} rewritten, ${plural(blobs, 'content')} gone from the store. Old ids keep resolving.`
    return { json: { ...showPath(path!), replaced: ids, blobs, warnings }, text: [head, ...rows].join('\n'), warnings }
  } finally {
    closeContext(context)
  }
}

export default command
