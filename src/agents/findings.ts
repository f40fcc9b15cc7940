/** Which of our hooks the agents on this machine will really run: what is installed, and what stands in the way. */
import { CkptError } from '../core/errors.ts'
import { type Env, errno } from '../env.ts'
import type { Finding } from '../ops/doctor/finding.ts'
import { programInPath } from '../programs.ts'
import { type Agent, type Places, SCOPES } from './agent.ts'
import { agentCommand, type Standing, standing } from './install.ts'
import { clientIn, foundOutside, INSTALL_CLIENT, isAnothersClient } from './program.ts'

/** Nothing for agents that have no hook of ours. */
export async function agentFindings(env: Env, agents: readonly Agent[], places: Places): Promise<Finding[]> {
  const found: Finding[] = []
  for (const agent of agents) {
    const name = `agent ${agent.name}`
    try {
      const there = SCOPES.flatMap((scope) => standing(env, agent, { scope, places }) ?? []).filter(
        (one) => one.installed,
      )
      if (there.length === 0) continue
      const wrong = await inTheWay(env, agent, { there, places })
      const where = there.map(({ scope, path }) => `${scope}: ${path}`).join(', ')
      found.push(
        wrong === null
          ? { name, ok: true, detail: `${whetherRun(env, agent)} (${where})` }
          : { name, ok: false, advice: true, detail: `${wrong.why} (${where})`, mend: wrong.mend },
      )
    } catch (error) {
      if (!(error instanceof CkptError)) throw error
      found.push({
        name,
        ok: false,
        advice: true,
        detail: error.message,
        ...(error.hints[0] ? { mend: error.hints[0] } : {}),
      })
    }
  }
  return found
}

/** An agent that is not here cannot be asked what its person trusts. */
function whetherRun(env: Env, { name, title, trust }: Agent): string {
  if (!trust || programInPath(env, name)) return 'its hooks run'
  return `its hooks are there; whether ${title} trusts them is not known, for there is no program ${name} to ask`
}

interface InTheWay {
  why: string
  mend: string
}

async function inTheWay(
  env: Env,
  agent: Agent,
  { there, places }: { there: readonly Standing[]; places: Places },
): Promise<InTheWay | null> {
  for (const one of there) {
    const wrong = whatIsStarted(env, agent, one)
    if (wrong) return wrong
  }
  const off = agent.switchedOff?.(env, places) ?? null
  if (off !== null) return { why: `they are switched off by ${off.key} in ${off.path}`, mend: `edit ${off.path}` }
  const old = there.find(({ outdated }) => outdated)
  if (old) return { why: 'they are of another version of ckpt', mend: agentCommand('install', old) }
  const heard = new Set(there.map(({ missing }) => missing).reduce((a, b) => a.filter((event) => b.includes(event))))
  if (heard.size > 0) return { why: `none for ${[...heard].join(', ')}`, mend: agentCommand('install', there[0]!) }
  if (!agent.trust || !programInPath(env, agent.name)) return null
  const { trusted, waiting } = await agent.trust(env, { root: places.root, give: false })
  if (waiting === 0) return null
  return {
    why: `${waiting} of ${trusted + waiting} wait for your trust`,
    mend: `${agentCommand('install', there[0]!)} --trust`,
  }
}

/** What is wrong with the programs that its commands name. */
function whatIsStarted(env: Env, agent: Agent, one: Standing): InTheWay | null {
  const named = one.commands.map((command) => ({ command, client: clientIn(command, agent.name) }))
  const none = named.find(({ client }) => !canStart(env, client))
  if (none) {
    // What goes into the repository names no directory of this machine.
    const wantsPath = one.scope === 'project' && !foundOutside(env, 'ckpt-hook')
    const mend = wantsPath ? INSTALL_CLIENT : agentCommand('install', one)
    return { why: `they cannot be started: ${none.command}`, mend }
  }
  const other = named.find(({ client }) => client !== null && isAnothersClient(env, client))
  if (!other) return null
  const why = `they start ${other.client}, which is not of this ckpt`
  return { why, mend: other.client?.endsWith('/ckpt-hook') ? agentCommand('install', one) : `edit ${one.path}` }
}

/** Whether what a command line starts is there; of what only a shell can tell it is believed. */
function canStart(env: Env, client: string | null): boolean {
  if (client === null) return true
  if (!client.startsWith('/')) return foundOutside(env, client) !== null
  try {
    env.files.accessSync(client, client.endsWith('.js') ? 4 : 1) // R_OK, X_OK: access(2)
    return true
  } catch (error) {
    if (errno(error) === undefined) throw error
    return false
  }
}
