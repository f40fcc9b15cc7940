// The main job, for real: a scratch repository, the watcher, an agent's turns, list, diff, undo, redo, going on after an
// undo, and a commit that is refused while an undo is pending.
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

const base = mkdtempSync(path.join(tmpdir(), 'ckpt-demo-'))
const root = path.join(base, 'shop')
const program = path.resolve(import.meta.dirname, '../bin/ckpt.js')
const vars = { ...process.env, HOME: base, GIT_CONFIG_GLOBAL: '/dev/null', NO_COLOR: '1' }
mkdirSync(root)

const say = (text: string) => console.log(`\n# ${text}`)
const git = (...args: string[]) =>
  execFileSync('git', ['-c', 'user.name=Demo', '-c', 'user.email=demo@example.com', ...args], {
    cwd: root,
    env: vars,
    encoding: 'utf8',
  })
function ckpt(...args: string[]): string {
  console.log(`$ ckpt ${args.map((arg) => (/[^\w./:@=-]/.test(arg) ? JSON.stringify(arg) : arg)).join(' ')}`)
  const out = execFileSync(process.execPath, [program, ...args], { cwd: root, env: vars, encoding: 'utf8' })
  process.stdout.write(out)
  return out
}
/** Whether git let the commit through; what it said is shown. */
function commit(message: string): boolean {
  console.log(`$ git commit -m ${JSON.stringify(message)}`)
  const args = ['-c', 'user.name=Demo', '-c', 'user.email=demo@example.com', 'commit', '-m', message]
  const done = spawnSync('git', args, { cwd: root, env: vars, encoding: 'utf8' })
  process.stdout.write(done.stdout + done.stderr)
  return done.status === 0
}
function expect(what: string, holds: boolean): void {
  if (!holds) throw new Error(`the demo failed: ${what}`)
}
const file = (name: string) => path.join(root, name)
const read = (name: string) => readFileSync(file(name), 'utf8')

try {
  git('init', '-q', '-b', 'main')
  writeFileSync(file('app.js'), "console.log('shop')\n")
  writeFileSync(file('notes.txt'), 'mine\n')
  git('add', '-A')
  git('commit', '-q', '-m', 'first')

  say('The watcher stands by, and git refuses to commit what is half undone.')
  ckpt('daemon', 'start')
  ckpt('hooks', 'install')

  say('An agent works three turns: each is a marker at its start and one at its end.')
  ckpt('mark', 'prompt', '--session', 'chat', '--agent', 'demo', '--text', 'Add a cart')
  writeFileSync(file('cart.js'), 'export const cart = []\n')
  ckpt('mark', 'stop', '--session', 'chat')
  ckpt('mark', 'prompt', '--session', 'chat', '--text', 'Use the cart in the app')
  writeFileSync(file('app.js'), "import { cart } from './cart.js'\nconsole.log('shop', cart)\n")
  ckpt('mark', 'stop', '--session', 'chat')
  ckpt(
    'run',
    '--session',
    'chat',
    '--text',
    'Clean up with a shell command',
    '--',
    'sh',
    '-c',
    'rm cart.js && echo "// v2" >> app.js',
  )

  say('What did they do?')
  ckpt('list')
  ckpt('diff')

  say('You edit a file of your own, then take the last two turns back. Your edit stays.')
  writeFileSync(file('notes.txt'), 'mine, and newer\n')
  ckpt('undo', '--turns', '2')
  expect('cart.js is back', existsSync(file('cart.js')))
  expect('app.js is as it was', read('app.js') === "console.log('shop')\n")
  expect('the own edit stays', read('notes.txt') === 'mine, and newer\n')

  say('One forward again, then all.')
  ckpt('redo')
  expect('turn 2 is back', read('app.js').startsWith('import'))
  ckpt('redo', '--all')
  expect('turn 3 is back', !existsSync(file('cart.js')))

  say('Undo once more, and go on: what was undone is kept aside, not lost.')
  ckpt('undo')
  ckpt('mark', 'prompt', '--session', 'chat', '--text', 'Keep the cart, add a total')
  writeFileSync(file('total.js'), 'export const total = 0\n')
  ckpt('mark', 'stop', '--session', 'chat')
  ckpt('list', '--abandoned')
  ckpt('status')
  ckpt('verify')

  say('While an undo is pending, git refuses to commit.')
  ckpt('undo')
  git('add', '-A')
  expect('the commit is refused', !commit('half a thing'))
  ckpt('accept')
  expect('after accept it passes', commit('the cart'))
  expect("the user's git saw nothing", git('log', '--all', '--oneline').trim().split('\n').length === 2)
  ckpt('daemon', 'stop')
  console.log('\nThe demo ran to its end; every state was as expected.')
} finally {
  spawnSync(process.execPath, [program, 'daemon', 'stop'], { cwd: root, env: vars })
  rmSync(base, { recursive: true, force: true })
}
