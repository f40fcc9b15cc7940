import { FIRST_TURN } from '../../core/errors.ts'
import { storeExists } from '../../git/store.ts'
import { closeContext, openContext } from '../../ops/context.ts'
import type { Command } from '../command.ts'

const init: Command = async ({ env, cwd }) => {
  const before = await openContext(env, cwd, { init: false }).catch((error: unknown) => error)
  const had =
    before instanceof Error ? false : storeExists(env, (before as Awaited<ReturnType<typeof openContext>>).place)
  const context = await openContext(env, cwd, { init: true })
  try {
    const path = context.place.directory
    const text = had
      ? `Already initialized: ${path}`
      : [`Initialized: ${path}`, 'What records turns:', ...FIRST_TURN.map((line) => `  ${line}`)].join('\n')
    return { json: { store: { path }, created: !had, warnings: context.warnings }, text, warnings: context.warnings }
  } finally {
    closeContext(context)
  }
}

export default init
