import type { Agent, Places, Scope, Trust } from '../../agents/agent.ts'
import { SCOPES } from '../../agents/agent.ts'
import {
  agentCommand,
  carryOut,
  changes,
  type Plan,
  planInstall,
  planUninstall,
  standing,
} from '../../agents/install.ts'
import { noteNode } from '../../agents/noted-node.ts'
import { maybeNoClient } from '../../agents/program.ts'
import { AGENT_NAMES, findAgent } from '../../agents/registry.ts'
import { CkptError } from '../../core/errors.ts'
import { printable } from '../../core/paths.ts'
import type { Env } from '../../env.ts'
import { findRepository } from '../../git/repository.ts'
import { realDirectory } from '../../ops/worktree/place.ts'
import { flag, oneOf, text } from '../arguments.ts'
import type { Arguments, Command, Output } from '../command.ts'
import { agentChangeText, agentStatusText, changeOf } from '../present/agent.ts'
import { askYesNo } from '../question.ts'

const ACTIONS = ['install', 'uninstall', 'status'] as const
const NOT_ASKED = { trusts: [], failed: [] }
/** Lines of a change that are shown before it is asked about. */
const SHOWN = 30

type Action = (typeof ACTIONS)[number]

const usage = (message: string) =>
  new CkptError('USAGE', `${message} Nothing was changed.`, { hints: ['ckpt agent --help'] })

const command: Command = async ({ env, args, cwd, colors }) => {
  const action = String(args.action) as Action
  if (!ACTIONS.includes(action)) throw usage(`agent wants one of ${ACTIONS.join(', ')}.`)
  const scope = oneOf(args, 'scope', SCOPES)
  const named = await namedAgent(args, action)
  const here = realDirectory(env, cwd, 'Nothing was changed.')
  const root = (await findRepository(env, here))?.root ?? here
  const places = { home: env.home, vars: env.vars, root }
  const agents = named ? [named] : await agentsHere(env, { action, places })
  if (action === 'status') return status(env, agents, { scopes: scope ? [scope] : SCOPES, places })
  const plan = action === 'install' ? planInstall : planUninstall
  const plans = agents.map((agent) => plan(env, agent, { scope: scope ?? 'user', places }))
  const dryRun = flag(args, 'dry-run')
  const wanted = plans.filter(changes)
  if (!dryRun && wanted.length > 0 && !(await agreed(env, args, wanted))) {
    return { json: { dryRun, agents: plans.map((one) => changeJson(one, false)) }, text: 'Nothing was changed.' }
  }
  if (!dryRun) for (const one of plans) carryOut(env, one, action)
  if (!dryRun && action === 'install') noteNode(env)
  if (plans.length === 0) {
    const names = AGENT_NAMES.join('|')
    const none = `No agent has left its directory here: nothing was changed. By name: ckpt agent ${action} ${names}`
    return { json: { dryRun, agents: [] }, text: none }
  }
  const {
    trusts,
    failed: [failed],
  } = dryRun || action === 'uninstall' ? NOT_ASKED : await trust(env, args, { agents, root })
  const changed = plans.map((one) => changeJson(one, action === 'install'))
  const noClient = action === 'install' ? maybeNoClient(env, scope ?? 'user') : null
  const warned = noClient === null ? {} : { warnings: [noClient] }
  return {
    json: {
      dryRun,
      agents: changed.map((one) => ({ ...one, ...trusts.find(({ name }) => name === one.name)?.json })),
      ...warned,
    },
    text: [
      ...plans.map((one) => {
        const others = action === 'uninstall' ? elsewhere(env, one, places) : []
        return [agentChangeText(one, { action, dryRun, colors }), ...others].join('\n')
      }),
      ...trusts.map(({ line }) => line),
    ].join('\n\n'),
    ...warned,
    ...(failed ? { ok: false, exitCode: failed.exitCode, error: asFailed(failed) } : {}),
  }
}

/** What an uninstall in one scope leaves in the others. */
function elsewhere(env: Env, { agent, scope }: Plan, places: Places): string[] {
  const { rows } = standingOf(env, [agent], { scopes: SCOPES.filter((one) => one !== scope), places })
  return rows
    .filter(({ installed }) => installed)
    .map((row) => `Also in its settings of scope ${row.scope}: ${agentCommand('uninstall', row)}`)
}

const asFailed = ({ code, message, hints }: CkptError) => ({
  code,
  message: `${message} Its hooks are installed, and wait for that: it runs none before.`,
  hints,
})

/** Asked of a person, or told with `--trust`: nobody else's consent is given by the way. */
async function trust(env: Env, args: Arguments, { agents, root }: { agents: readonly Agent[]; root: string }) {
  const trusts: { name: string; json: { trust: Trust }; line: string }[] = []
  const failed: CkptError[] = []
  for (const agent of agents) {
    if (!agent.trust) continue
    const told = flag(args, 'trust')
    const asked = !told && !flag(args, 'yes') && env.stdin.isTTY
    const question = `${agent.title} runs hooks only once you trust them. Have it trust these?`
    if (!told && !(asked && (await askYesNo(env, question)))) continue
    const result = await agent.trust(env, { root, give: true }).catch((error: unknown) => {
      if (!(error instanceof CkptError)) throw error
      failed.push(error) // what was installed is said all the same
    })
    if (!result) continue
    const line = `${agent.title} trusts ${result.trusted} hooks of ckpt${result.waiting > 0 ? `, and not ${result.waiting}` : ''}.`
    trusts.push({ name: agent.name, json: { trust: result }, line })
  }
  return { trusts, failed }
}

function changeJson(plan: Plan, installed: boolean) {
  const { agent, scope, path, left } = plan
  const base = { name: agent.name, scope, path, installed, changed: changes(plan), diff: changeOf(plan) }
  return { ...base, ...(left === undefined ? {} : { left }) }
}

/** The agent that is named; null: none is. @throws CkptError USAGE */
async function namedAgent(args: Arguments, action: Action): Promise<Agent | null> {
  const name = text(args, 'name')
  const all = flag(args, 'all')
  if (name !== undefined && all) throw usage('An agent and --all do not go together.')
  if (name === undefined && !all && action !== 'status')
    throw usage(`Which agent? One of ${AGENT_NAMES.join(', ')}, or --all.`)
  if (name === undefined) return null
  const agent = await findAgent(name)
  if (!agent) throw usage(`There is no agent ${JSON.stringify(name)}: ${AGENT_NAMES.join(', ')} are known.`)
  return agent
}

async function agentsHere(env: Env, { action, places }: { action: Action; places: Places }): Promise<Agent[]> {
  const known = (await Promise.all(AGENT_NAMES.map(findAgent))).filter((agent) => agent !== null)
  if (action === 'status') return known
  // What is on this machine has left its directory.
  return known.filter((agent) => agent.signs(places).some((directory) => env.files.existsSync(directory)))
}

interface Asked {
  scopes: readonly Scope[]
  places: Places
}

/** Where our entries stand; what cannot be read is said beside it. */
function standingOf(env: Env, agents: readonly Agent[], { scopes, places }: Asked) {
  const unread: { agent: string; error: CkptError }[] = []
  const rows = agents.flatMap((agent) =>
    scopes.flatMap((scope) => {
      try {
        return standing(env, agent, { scope, places }) ?? []
      } catch (error) {
        if (!(error instanceof CkptError)) throw error
        unread.push({ agent: agent.name, error }) // the others are said all the same
        return []
      }
    }),
  )
  return { rows, unread }
}

function status(env: Env, agents: readonly Agent[], asked: Asked): Output {
  const { rows, unread } = standingOf(env, agents, asked)
  const errors = unread.map(({ error }) => error)
  const [first] = errors
  const message = errors.map((error) => error.message).join(' ')
  const hints = errors.flatMap((error) => error.hints)
  return {
    json: { agents: rows.map(({ agent, ...rest }) => ({ name: agent, ...rest })) },
    text: agentStatusText(rows, { unread: unread.map(({ agent }) => agent) }),
    paged: true,
    ...(first ? { ok: false, exitCode: first.exitCode, error: { code: first.code, message, hints } } : {}),
  }
}

/** Asks on a terminal, once, after the change was shown; nothing is asked of a script. */
async function agreed(env: Env, args: Arguments, plans: readonly Plan[]): Promise<boolean> {
  if (flag(args, 'yes') || !env.stdin.isTTY) return true
  for (const plan of plans) {
    const lines = changeOf(plan).split('\n')
    const more = lines.length - SHOWN
    const rest = more > 1 ? [`  … and ${more} more lines: ckpt agent ${args.action} ${plan.agent.name} --dry-run`] : []
    const shown = rest.length > 0 ? lines.slice(0, SHOWN) : lines
    env.stderr.write(`${printable(plan.path)}\n${[...shown.map(printable), ...rest].join('\n')}\n`)
  }
  return askYesNo(env, 'Write this?')
}

export default command
