/** What was done to an agent's settings, as text. Pure. */
import { createTwoFilesPatch } from 'diff'
import { agentCommand, type Plan, type Standing } from '../../agents/install.ts'
import { printable } from '../../core/paths.ts'
import type { Colors } from '../command.ts'

/** The change as a unified diff without its header; empty: there is none. */
export function changeOf({ path, before, after }: Plan): string {
  if (before === after) return ''
  const patch = createTwoFilesPatch(path, path, before ?? '', after ?? '', '', '', { context: 2 })
  const lines = patch.split('\n')
  return lines
    .slice(lines.findIndex((line) => line.startsWith('@@')))
    .filter((line) => !line.startsWith('\\'))
    .join('\n')
    .trimEnd()
}

export function agentChangeText(
  plan: Plan,
  { action, dryRun, colors: c }: { action: 'install' | 'uninstall'; dryRun: boolean; colors: Colors },
): string {
  const { agent, scope, path, before, after, left = [] } = plan
  const where = printable(path)
  const kept = left.map((command) => `Left, for it does more than run ckpt's hook: ${printable(command)}`)
  if (before === after) {
    if (action === 'install') return `${agent.title} has the hooks already: ${where}`
    const none = `${agent.title} has no hooks of ckpt ${left.length > 0 ? 'alone ' : ''}in ${where}`
    return [none, ...kept].join('\n')
  }
  const done = action === 'install' ? 'Installed' : 'Removed'
  const would = action === 'install' ? 'Would install' : 'Would remove'
  const lines = [`${dryRun ? would : done} the hooks for ${agent.title}: ${where}`]
  for (const line of dryRun ? changeOf(plan).split('\n') : []) {
    const shown = line.split('\t').map(printable).join('\t')
    lines.push(line.startsWith('+') ? c.green(shown) : line.startsWith('-') ? c.red(shown) : c.dim(shown))
  }
  if (action === 'install') {
    lines.push(`Seen: ${agent.covers}.`)
    if (agent.afterwards) lines.push(agent.afterwards)
    if (!dryRun) lines.push(c.dim(`Out again: ${agentCommand('uninstall', { agent: agent.name, scope })}`))
  }
  lines.push(...kept)
  return lines.join('\n')
}

/** Of agents whose settings could not be read nobody knows that they are not installed. */
export function agentStatusText(rows: readonly Standing[], { unread }: { unread: readonly string[] }): string {
  const shown = rows.filter((row) => row.installed)
  const lines = shown.map((row) => {
    const { agent, scope, path, missing, outdated } = row
    const odd = [
      ...(missing.length > 0 ? [`not for ${missing.join(', ')}`] : []),
      ...(outdated ? [`of another version of ckpt; renew: ${agentCommand('install', row)}`] : []),
    ]
    return [agent.padEnd(9), scope.padEnd(8), printable(path), ...odd.map((one) => ` (${one})`)].join(' ')
  })
  const known = new Set([...unread, ...shown.map(({ agent }) => agent)])
  const none = [...new Set(rows.map(({ agent }) => agent))].filter((name) => !known.has(name))
  if (none.length > 0) lines.push(`Not installed: ${none.join(', ')}. Install: ckpt agent install NAME`)
  return lines.join('\n')
}
