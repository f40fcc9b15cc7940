/** The real OpenCode server from npm, in a worktree of the test's own, with the model on loopback. */
import { type ChildProcess, spawn } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { onTestFinished } from 'vitest'
import { OpenCode } from '../../src/wrappers/opencode/opencode.ts'
import { clientPackage } from './clients.ts'
import { Scratch } from './scratch.ts'
import { type Model, startModel } from './told-model.ts'

const platform = `opencode-${process.platform}-${process.arch}`

/** The program itself: the package's own start script would look for it anew. */
export const opencodeProgram = ['', '-baseline']
  .map((kind) => clientPackage('opencode', `${platform}${kind}`))
  .filter((directory) => directory !== null)
  .map((directory) => path.join(directory, 'bin/opencode'))
  .find((file) => fs.existsSync(file))

export interface OpenCodeStage {
  scratch: Scratch
  model: Model
  url: string
  opencode: OpenCode
  /** As another client of the same server does it. */
  post: (path: string, body?: object) => Promise<any>
  get: (path: string) => Promise<any>
  /** A session of the server's, attached. */
  session: () => Promise<string>
  /** One prompt, to its end. */
  say: (session: string, prompt: string) => Promise<void>
}

export async function openCodeStage(): Promise<OpenCodeStage> {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'b.txt': 'b\n' })
  const model = await startModel(scratch.root)
  const url = await serve(scratch, model)
  const opencode = new OpenCode({ url, directory: scratch.root, vars: scratch.vars })
  const ask = async (method: string, at: string, body?: object) => {
    const address = `${url}${at}?directory=${encodeURIComponent(scratch.root)}`
    const headers = { 'content-type': 'application/json' }
    const answer = await fetch(address, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${at}: ${answer.status} ${text}`)
    return text === '' ? null : JSON.parse(text)
  }
  const post = (at: string, body: object = {}) => ask('POST', at, body)
  return {
    scratch,
    model,
    url,
    opencode,
    post,
    get: (at) => ask('GET', at),
    session: async () => {
      const { id } = await post('/session', { title: 'a test' })
      await opencode.attach(id)
      return id
    },
    say: async (session, prompt) => {
      await post(`/session/${session}/message`, { parts: [{ type: 'text', text: prompt }] })
    },
  }
}

async function serve(scratch: Scratch, model: Model): Promise<string> {
  const config = {
    autoupdate: false,
    share: 'disabled',
    permission: 'allow',
    model: 'fake/fake',
    small_model: 'fake/fake',
    enabled_providers: ['fake'],
    provider: {
      fake: {
        npm: '@ai-sdk/openai-compatible',
        name: 'Fake',
        options: { baseURL: `${model.url}/v1`, apiKey: 'none' },
        models: { fake: { name: 'Fake', limit: { context: 100_000, output: 8000 }, tool_call: true } },
      },
    },
  }
  const child = spawn(opencodeProgram!, ['serve', '--hostname', '127.0.0.1', '--port', '0'], {
    cwd: scratch.root,
    env: {
      ...scratch.vars,
      OPENCODE_CONFIG_CONTENT: JSON.stringify(config),
      OPENCODE_DISABLE_AUTOUPDATE: '1',
      OPENCODE_DISABLE_MODELS_FETCH: '1',
      OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
      OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
      OPENCODE_DISABLE_SHARE: '1',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  onTestFinished(() => ended(child))
  return new Promise((resolve, reject) => {
    let said = ''
    const hear = (chunk: Buffer) => {
      said += chunk.toString()
      const found = /http:\/\/127\.0\.0\.1:\d+/.exec(said)
      if (found) resolve(found[0])
    }
    child.stdout.on('data', hear)
    child.stderr.on('data', hear)
    child.on('exit', () => reject(new Error(`opencode ended: ${said}`)))
  })
}

async function ended(child: ChildProcess): Promise<void> {
  const gone = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGKILL')
  await gone
}
