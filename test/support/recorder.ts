/** `CKPT_RECORD=1 npm run test:agents`: what the clients' hooks are sent becomes test/data/payloads. */
import fs from 'node:fs'
import path from 'node:path'
import type { Place } from './real-agents.ts'
import type { Json } from './scratch.ts'

const DATA = path.resolve(import.meta.dirname, '../data/payloads')

/** Every event of OpenCode's that could matter, whole: the plugin that we ship sends less. */
const PLUGIN = `
import fs from 'node:fs'
let n = 0
const log = (via, event, payload) =>
  fs.writeFileSync(
    process.env.CKPT_RECORDED + '/' + Date.now() + String(n++).padStart(6, '0') + '.json',
    JSON.stringify({ via, event, payload: { hook_event_name: event, ...payload } }),
  )
export const Recorder = async () => ({
  ...Object.fromEntries(
    ['chat.message', 'tool.execute.before', 'tool.execute.after'].map((event) => [
      event,
      async (input, output) => log('opencode-hook', event, { input, output }),
    ]),
  ),
  event: async ({ event }) => {
    if (/^session\\.(created|idle|error)$/.test(event.type)) log('opencode-bus', event.type, event)
  },
})
`

/** In front of the hook; gives the variables that the client needs for it. */
export function recordHooks(scratch: Place, agent: string, bin: string): Record<string, string> {
  const directory = path.join(scratch.base, 'recorded')
  fs.mkdirSync(directory, { recursive: true })
  const hook = path.join(bin, 'ckpt-hook')
  if (agent === 'opencode') {
    const plugin = path.join(scratch.home, '.config/opencode/plugin/a-recorder.js')
    fs.mkdirSync(path.dirname(plugin), { recursive: true })
    fs.writeFileSync(plugin, PLUGIN)
  } else {
    fs.renameSync(hook, path.join(bin, 'ckpt-hook-itself'))
    const script = `#!/bin/sh
file="$CKPT_RECORDED/$(date +%s%N).$1"
cat >"$file"
exec "\${0%/*}/ckpt-hook-itself" "$@" <"$file"
`
    fs.writeFileSync(hook, script, { mode: 0o755 })
  }
  return { CKPT_RECORDED: directory }
}

export function keepRecorded(scratch: Place, agent: string, scenario: string): void {
  const directory = path.join(scratch.base, 'recorded')
  const rows = fs
    .readdirSync(directory)
    .sort()
    .map((name) => {
      const value: Json = JSON.parse(fs.readFileSync(path.join(directory, name), 'utf8'))
      return name.endsWith('.json') ? value : { via: agent, event: value.hook_event_name, payload: value }
    })
  const slug = (text: string) => text.replaceAll(/[^A-Za-z0-9]/g, '-')
  const text = rows
    .map((row) => `${JSON.stringify(row)}\n`)
    .join('')
    .replaceAll(scratch.home, '$HOME')
    .replaceAll(scratch.root, '$WORK')
    .replaceAll(slug(scratch.root), '-WORK')
    .replaceAll(`/.gemini/tmp/${path.basename(scratch.root)}/`, '/.gemini/tmp/project/')
  fs.writeFileSync(path.join(DATA, agent, `${scenario}.ndjson`), text)
}
