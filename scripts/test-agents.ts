// `npm run test:agents`: installs the agents' own clients from npm, pinned, into a cache, and runs the tests that need them.
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { CACHE } from '../test/support/clients.ts'
import { CLIENTS, modulesOf } from '../test/support/real-agents.ts'

/** What the tests were made with. */
const PACKAGES: readonly { name: string; package: string; version: string }[] = [
  { name: 'claude-agent-sdk', package: '@anthropic-ai/claude-agent-sdk', version: '0.3.332' },
  { name: 'opencode', package: 'opencode-ai', version: '1.18.33' },
]

for (const { name, package: id, version } of PACKAGES) {
  const place = path.join(CACHE, name)
  const manifest = path.join(place, 'node_modules', id, 'package.json')
  if (fs.existsSync(manifest) && JSON.parse(fs.readFileSync(manifest, 'utf8')).version === version) continue
  install(place, [`${id}@${version}`])
}
for (const [agent, { packages }] of Object.entries(CLIENTS)) {
  if (modulesOf(agent)) continue
  install(path.join(CACHE, agent), packages)
  fs.writeFileSync(path.join(CACHE, agent, 'installed'), packages.join(' '))
  if (!modulesOf(agent)) console.error(`${agent} does not come for this system: its tests will be skipped.`)
}

function install(place: string, packages: readonly string[]): void {
  fs.mkdirSync(place, { recursive: true })
  if (!fs.existsSync(`${place}/package.json`)) fs.writeFileSync(`${place}/package.json`, '{"private":true}\n')
  console.log(`installing ${packages.join(', ')}`)
  // No scripts: the programs for this system come as packages of their own.
  const args = ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--save-exact', ...packages]
  if (spawnSync('npm', args, { cwd: place, stdio: 'inherit' }).status !== 0)
    throw new Error(`npm could not install ${packages.join(', ')}`)
}

// In a network namespace of its own there is nothing but loopback, where that is allowed.
const alone = spawnSync('unshare', ['-n', 'ip', 'link', 'set', 'lo', 'up']).status === 0
const tests = ['test/backends', 'test/agents/real.test.ts', 'test/agents/real-more.test.ts']
const vitest = ['npx', 'vitest', 'run', ...tests, ...process.argv.slice(2)]
const [program, ...args] = alone
  ? ['unshare', '-n', 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh', ...vitest]
  : vitest
const env = { ...process.env, CKPT_AGENTS_REQUIRED: '1' }
process.exitCode = spawnSync(program!, args, { stdio: 'inherit', env }).status ?? 1
