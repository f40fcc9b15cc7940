import { findAgent } from '../../agents/registry.ts'
import { CkptError, FIRST_TURN } from '../../core/errors.ts'
import { storeExists } from '../../git/frame.ts'
import { findRepository } from '../../git/repository.ts'
import { closeContext, openContext } from '../../ops/worktree/context.ts'
import { realDirectory } from '../../ops/worktree/place.ts'
import { flag } from '../arguments.ts'
import type { Command, Invocation, Output } from '../command.ts'

async function initialize({ env, cwd }: Invocation, plain: boolean): Promise<Output> {
  const before = await openContext(env, cwd, { init: false }).catch((error: unknown) => error)
  const had =
    before instanceof Error ? false : storeExists(env, (before as Awaited<ReturnType<typeof openContext>>).place)
  const context = await openContext(env, cwd, { init: true })
  try {
    const path = context.place.directory
    const next = plain ? ['What records turns:', ...FIRST_TURN.map((line) => `  ${line}`)] : []
    const text = had ? `Already initialized: ${path}` : [`Initialized: ${path}`, ...next].join('\n')
    return { json: { store: { path }, created: !had, warnings: context.warnings }, text, warnings: context.warnings }
  } finally {
    closeContext(context)
  }
}

const init: Command = async (invocation) => {
  const { env, args, cwd } = invocation
  const names = ((args.agent as string[] | undefined) ?? []).map(String)
  const agent = (await import('./agent.ts')).default
  const install = (name: string): Invocation => ({ ...invocation, args: { ...args, action: 'install', name } })
  for (const name of names) {
    if (await findAgent(name)) continue
    await agent(install(name)) // says which there are, before anything is made
  }
  const root = realDirectory(env, cwd, 'Nothing was changed.')
  if (flag(args, 'hooks') && !(await findRepository(env, root))) {
    throw new CkptError('BAD_ROOT', `${root} is a plain directory: it has no git hooks. Nothing was changed.`, {
      hints: ['git init', 'ckpt init   (without --hooks)'],
    })
  }
  const done = [await initialize(invocation, names.length === 0)]
  if (flag(args, 'hooks')) {
    const hooks = (await import('./hooks.ts')).default
    done.push(await hooks({ ...invocation, args: { ...args, action: 'install' } }))
  }
  const agents: Output[] = []
  for (const name of names) agents.push(await agent(install(name)))
  const warnings = [...done, ...agents].flatMap((one) => one.warnings ?? [])
  return {
    json: {
      ...Object.assign({}, ...done.map(({ json }) => json)),
      ...(agents.length > 0 ? { agents: agents.flatMap(({ json }) => (json as { agents: object[] }).agents) } : {}),
      warnings,
    },
    text: [...done, ...agents].map(({ text }) => text).join('\n\n'),
    warnings,
  }
}

export default init
