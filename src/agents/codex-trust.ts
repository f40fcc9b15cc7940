/**
 * Codex runs a hook only when its user trusted it, and passes over all others without a word. Its app server says which
 * those are, and takes a yes as its own interface does (JSON-RPC, a message a line).
 */
import { createInterface } from 'node:readline'
import * as z from 'zod/mini'
import { CkptError } from '../core/errors.ts'
import { type Env, errno } from '../env.ts'
import type { Trust } from './agent.ts'
import { isHookOf } from './program.ts'

const hookSchema = z.looseObject({
  key: z.string(),
  currentHash: z.string(),
  trustStatus: z.string(),
  isManaged: z.optional(z.boolean()),
  enabled: z.optional(z.boolean()),
  command: z.optional(z.nullable(z.string())),
})
const listSchema = z.looseObject({ data: z.array(z.looseObject({ hooks: z.array(hookSchema) })) })
type CodexHook = z.output<typeof hookSchema>

/** Milliseconds for one answer. */
const PATIENCE = 15_000

/** @throws CkptError INTERNAL when there is no Codex, or it does not answer */
export async function codexTrust(env: Env, root: string, { give }: { give: boolean }): Promise<Trust> {
  const hooks = await codexHooks(env, root, give)
  const trusted = hooks.filter(isTrusted).length
  return { trusted, waiting: hooks.length - trusted }
}

const isTrusted = ({ trustStatus }: CodexHook) => trustStatus === 'trusted'

async function codexHooks(env: Env, root: string, give: boolean): Promise<CodexHook[]> {
  const child = env.spawn('codex', ['app-server'], {
    cwd: root,
    env: env.vars as NodeJS.ProcessEnv,
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  const waiting = new Map<number, { resolve: (result: unknown) => void; reject: (error: Error) => void }>()
  const fail = (why: string) => {
    for (const { reject } of waiting.values()) reject(notAnswered(why))
    waiting.clear()
  }
  child.on('error', (error) => fail(errno(error) === 'ENOENT' ? 'no `codex` is in PATH here' : error.message))
  child.on('close', () => fail('it ended'))
  child.stdin?.on('error', () => undefined) // `close` says so
  createInterface({ input: child.stdout! }).on('line', (line) => {
    const message = parse(line)
    const one = waiting.get(message?.id ?? -1)
    if (!message || !one) return
    waiting.delete(message.id!)
    if (message.error === undefined) one.resolve(message.result)
    else one.reject(notAnswered(JSON.stringify(message.error)))
  })
  const send = (message: object) => child.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  let id = 0
  const call = (method: string, params: object): Promise<unknown> =>
    new Promise((resolve, reject) => {
      const mine = ++id
      waiting.set(mine, { resolve, reject })
      setTimeout(() => reject(notAnswered(`no answer to ${method}`)), PATIENCE).unref()
      send({ id: mine, method, params })
    })
  const list = async () => {
    const parsed = listSchema.safeParse(await call('hooks/list', { cwds: [root] }))
    if (!parsed.success) throw notAnswered('its list of hooks has another form')
    return parsed.data.data.flatMap(({ hooks }) => hooks).filter(isOurs)
  }
  try {
    await call('initialize', { clientInfo: { name: 'ckpt', title: 'ckpt', version: '1' } })
    send({ method: 'initialized' })
    const hooks = await list()
    const open = hooks.filter((hook) => !isTrusted(hook))
    if (!give || open.length === 0) return hooks
    const value = Object.fromEntries(open.map(({ key, currentHash }) => [key, { trusted_hash: currentHash }]))
    const edits = [{ keyPath: 'hooks.state', value, mergeStrategy: 'upsert' }]
    await call('config/batchWrite', { edits, reloadUserConfig: true })
    return await list()
  } finally {
    child.stdin?.end()
    child.kill()
  }
}

const isCodexHook = isHookOf('codex')
const isOurs = ({ command, isManaged }: CodexHook) => !isManaged && typeof command === 'string' && isCodexHook(command)

const notAnswered = (why: string) =>
  new CkptError('INTERNAL', `Codex could not be asked which hooks it trusts: ${why}.`, {
    hints: ['start codex once and say yes to the hooks it shows'],
  })

function parse(line: string): { id?: number; result?: unknown; error?: unknown } | null {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' ? value : null
  } catch {
    return null // a line of its log
  }
}
