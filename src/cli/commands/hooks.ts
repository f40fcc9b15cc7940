import { CkptError } from '../../core/errors.ts'
import { openForReading } from '../../ops/recovery/reading.ts'
import { closeContext, openContext } from '../../ops/worktree/context.ts'
import type { Command } from '../command.ts'
import { hooksText } from '../present/hooks.ts'

const actions = {
  install: async () => (await import('../../githooks/install.ts')).installHooks,
  uninstall: async () => (await import('../../githooks/uninstall.ts')).uninstallHooks,
  status: async () => (await import('../../githooks/status.ts')).hooksStatus,
} as const

const command: Command = async ({ env, args, cwd, colors }) => {
  const action = String(args.action)
  if (!Object.hasOwn(actions, action)) {
    throw new CkptError(
      'USAGE',
      `${JSON.stringify(action)} is none of install, uninstall, status. Nothing was changed.`,
      {
        hints: ['ckpt hooks --help'],
      },
    )
  }
  const known = action as keyof typeof actions
  const context =
    known === 'status' ? await openForReading(env, cwd) : await openContext(env, cwd, { present: known === 'install' })
  try {
    const result = await (await actions[known]())(context)
    const { hooks, place, warnings } = result
    const json = { hooks, directory: place.directory, warnings }
    return { json, text: hooksText(known, result, colors), warnings, paged: known === 'status' }
  } finally {
    closeContext(context)
  }
}

export default command
