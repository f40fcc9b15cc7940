// `npm run test:agents`: installs the real clients, pinned, into a cache outside the project, and runs their tests without a network.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { CACHE, CLIENTS, modulesOf } from '../test/support/real-agents.ts'

for (const [agent, { packages }] of Object.entries(CLIENTS)) {
  if (modulesOf(agent)) continue
  const directory = `${CACHE}/${agent}`
  mkdirSync(directory, { recursive: true })
  if (!existsSync(`${directory}/package.json`)) writeFileSync(`${directory}/package.json`, '{"private":true}\n')
  console.log(`installing ${packages.join(', ')}`)
  // No scripts: the programs for this system come as packages of their own.
  const args = ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--save-exact', ...packages]
  const done = spawnSync('npm', args, { cwd: directory, stdio: 'inherit' })
  if (done.status !== 0) {
    console.error(`npm could not install ${agent}: its tests will be skipped.`)
    continue
  }
  writeFileSync(`${directory}/installed`, packages.join(' '))
  if (!modulesOf(agent)) console.error(`${agent} does not come for this system: its tests will be skipped.`)
}
// In a network namespace of its own there is nothing but loopback, where that is allowed.
const alone = spawnSync('unshare', ['-n', 'ip', 'link', 'set', 'lo', 'up']).status === 0
const vitest = [
  'npx',
  'vitest',
  'run',
  'test/agents/real.test.ts',
  'test/agents/real-more.test.ts',
  ...process.argv.slice(2),
]
const command = alone ? ['unshare', '-n', 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh', ...vitest] : vitest
process.exitCode = spawnSync(command[0]!, command.slice(1), { stdio: 'inherit' }).status ?? 1
