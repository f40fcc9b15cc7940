/** The real clients, offline: installed into a cache by `npm run test:agents`, and told what to do by a model on loopback. */
import { spawn, spawnSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { CACHE } from './clients.ts'
import { recordHooks } from './recorder.ts'
import type { Scratch } from './scratch.ts'

const BIN = path.resolve(import.meta.dirname, '../../bin')

export interface Client {
  /** Pinned: what the tests expect was seen on these. */
  packages: readonly string[]
  command: (modules: string) => readonly string[]
  /** Writes its settings into the home, without hooks. */
  configure: (places: Places) => void
  vars: (url: string) => Record<string, string>
  /** One prompt without a terminal. */
  once: (prompt: string, from: From) => readonly string[]
  /** On a terminal. */
  interactive: readonly string[]
  /** Milliseconds after which it takes what is typed. */
  settling: number
  /** Keys that interrupt a turn, and the words that end the program. */
  interrupt: readonly string[]
  quit: string
}

export interface Places {
  home: string
  root: string
  url: string
  modules: string
}

/** What a prompt goes on with: null is a new conversation. */
export type From = { session: string; fork?: boolean } | null

function put(home: string, name: string, content: string | object): void {
  const file = path.join(home, name)
  fs.mkdirSync(path.dirname(file), { recursive: true })
  fs.writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content, null, 2))
}

const platform = `${process.platform}-${process.arch}`

export const CLIENTS: Record<string, Client> = {
  claude: {
    packages: ['@anthropic-ai/claude-code@2.1.332'],
    command: (modules) => [`${modules}/@anthropic-ai/claude-code-${platform}/claude`],
    configure: ({ home, root }) => {
      put(home, '.claude/settings.json', {})
      put(home, '.claude.json', {
        projects: { [root]: { hasTrustDialogAccepted: true } },
        hasCompletedOnboarding: true,
        theme: 'dark',
        customApiKeyResponses: { approved: ['dummy'], rejected: [] },
      })
    },
    vars: (url) => ({
      ANTHROPIC_BASE_URL: url,
      ANTHROPIC_API_KEY: 'dummy',
      IS_SANDBOX: '1',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_TELEMETRY: '1',
      DISABLE_AUTOUPDATER: '1',
      DISABLE_ERROR_REPORTING: '1',
    }),
    once: (prompt, from) => [
      '-p',
      ...(from ? ['--resume', from.session, ...(from.fork ? ['--fork-session'] : [])] : []),
      ...[
        '--model',
        'claude-sonnet-4-5',
        '--dangerously-skip-permissions',
        '--output-format',
        'stream-json',
        '--verbose',
      ],
      prompt,
    ],
    interactive: ['--model', 'claude-sonnet-4-5', '--permission-mode', 'acceptEdits', '--allowedTools', 'Bash'],
    settling: 3000,
    interrupt: ['\x1b'],
    quit: '/exit',
  },
  codex: {
    packages: ['@openai/codex@0.171.0'],
    command: (modules) => [process.execPath, `${modules}/@openai/codex/bin/codex.js`],
    configure: ({ home, root, url }) =>
      put(
        home,
        '.codex/config.toml',
        `model = "gpt-5.5"
model_provider = "fake"
check_for_update_on_startup = false
[model_providers.fake]
name = "fake"
base_url = "${url}/v1"
wire_api = "responses"
env_key = "FAKE_API_KEY"
request_max_retries = 0
stream_max_retries = 0
[projects."${root}"]
trust_level = "trusted"
[analytics]
enabled = false
[features]
apps = false
plugins = false
remote_plugin = false
daemon_auto_start = false
[notice.model_migrations]
"gpt-5.5" = "gpt-6-sol"
[tui.model_availability_nux]
"gpt-6.1-sol" = 4
"gpt-6-sol" = 4
`,
      ),
    vars: () => ({ FAKE_API_KEY: 'dummy' }),
    once: (prompt, from) => [
      ...(from ? ['exec', 'resume', from.session] : ['exec']),
      ...['--json', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox'],
      prompt,
    ],
    interactive: ['--dangerously-bypass-approvals-and-sandbox'],
    settling: 3000,
    interrupt: ['\x1b'],
    quit: '/quit',
  },
  opencode: {
    packages: ['opencode-ai@1.18.33', '@opencode-ai/plugin@1.18.33'],
    command: (modules) => [`${modules}/opencode-${platform}/bin/opencode`],
    configure: ({ home, url, modules }) => {
      put(home, '.config/opencode/opencode.json', {
        $schema: 'https://opencode.ai/config.json',
        autoupdate: false,
        share: 'disabled',
        permission: 'allow',
        model: 'fake/fake-model',
        small_model: 'fake/fake-model',
        enabled_providers: ['fake'],
        provider: {
          fake: {
            npm: '@ai-sdk/openai-compatible',
            name: 'Fake',
            options: { baseURL: `${url}/v1`, apiKey: 'dummy' },
            models: {
              'fake-model': { name: 'Fake', limit: { context: 100_000, output: 8000 }, tool_call: true },
            },
          },
        },
      })
      // It installs its plugin package into every configuration directory first; without a network that takes a minute.
      const directory = path.join(home, '.config/opencode')
      fs.symlinkSync(modules, path.join(directory, 'node_modules'))
      for (const name of ['package.json', 'package-lock.json'])
        fs.copyFileSync(path.join(modules, '..', name), path.join(directory, name))
    },
    vars: () => ({
      OPENCODE_DISABLE_AUTOUPDATE: '1',
      OPENCODE_DISABLE_MODELS_FETCH: '1',
      OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
      OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
      OPENCODE_DISABLE_SHARE: '1',
    }),
    once: (prompt, from) => [
      'run',
      ...(from ? ['--session', from.session, ...(from.fork ? ['--fork'] : [])] : []),
      ...['--format', 'json', prompt],
    ],
    interactive: [],
    settling: 8000,
    interrupt: ['\x1b', '\x1b'],
    quit: '/exit',
  },
  gemini: {
    packages: ['@google/gemini-cli@0.61.0'],
    command: (modules) => [process.execPath, `${modules}/@google/gemini-cli/bundle/gemini.js`],
    configure: ({ home }) =>
      put(home, '.gemini/settings.json', {
        security: { auth: { selectedType: 'gemini-api-key' }, folderTrust: { enabled: false } },
        general: {
          disableAutoUpdate: true,
          enableAutoUpdate: false,
          enableAutoUpdateNotification: false,
          disableUpdateNag: true,
        },
        telemetry: { enabled: false },
        privacy: { usageStatisticsEnabled: false },
        model: { name: 'gemini-2.5-pro' },
      }),
    vars: (url) => ({
      GEMINI_API_KEY: 'dummy',
      GOOGLE_GEMINI_BASE_URL: url,
      GEMINI_CLI_NO_RELAUNCH: 'true',
      GEMINI_TELEMETRY_ENABLED: 'false',
    }),
    once: (prompt, from) => [
      ...(from ? ['--resume', from.session] : []),
      ...['--yolo', '--output-format', 'stream-json', '-m', 'gemini-2.5-pro', '-p', prompt],
    ],
    interactive: ['--yolo', '-m', 'gemini-2.5-pro'],
    settling: 3000,
    interrupt: ['\x1b'],
    quit: '/quit',
  },
}

/** Null: it is not installed, or for another system. */
export function modulesOf(agent: string): string | null {
  const modules = path.join(CACHE, agent, 'node_modules')
  const { command, packages } = CLIENTS[agent]!
  const isThere = command(modules).every((one) => one === process.execPath || fs.existsSync(one))
  const stamp = path.join(CACHE, agent, 'installed')
  return isThere && fs.existsSync(stamp) && fs.readFileSync(stamp, 'utf8') === packages.join(' ') ? modules : null
}

export interface Session {
  /** Runs one prompt; gives the id of its conversation. */
  turn: (prompt: string, from: From) => Promise<{ code: number; session: string; output: string }>
  argv: readonly string[]
  vars: Record<string, string>
}

export type Place = Pick<Scratch, 'base' | 'home' | 'root' | 'vars'>

/** A client with ckpt's own hooks in its settings, put there by the installer, unless told not to. */
export function prepare(
  scratch: Place,
  agent: string,
  { url, hooks = true }: { url: string; hooks?: boolean },
): Session {
  const client = CLIENTS[agent]!
  const modules = modulesOf(agent)!
  const bin = path.join(scratch.base, 'bin')
  fs.mkdirSync(bin, { recursive: true })
  const link = (target: string, name: string) => fs.symlinkSync(target, path.join(bin, name))
  if (!fs.existsSync(path.join(bin, 'ckpt'))) {
    link(path.join(BIN, 'ckpt.js'), 'ckpt')
    link(path.join(BIN, 'ckpt-hook'), 'ckpt-hook')
  }
  const argv = client.command(modules)
  const words = argv.map((word) => `'${word}'`).join(' ')
  fs.writeFileSync(path.join(bin, agent), `#!/bin/sh\nexec ${words} "$@"\n`, { mode: 0o755 })
  client.configure({ home: scratch.home, root: scratch.root, url, modules })
  const vars = {
    ...scratch.vars,
    ...client.vars(url),
    PATH: `${bin}:${scratch.vars.PATH}`,
    LC_ALL: 'C.UTF-8',
    TERM: 'xterm',
    ...(process.env.CKPT_RECORD ? recordHooks(scratch, agent, bin) : {}),
  }
  if (hooks) {
    const line = ['agent', 'install', agent, '--yes', ...(agent === 'codex' ? ['--trust'] : []), '--json']
    const done = spawnSync(path.join(bin, 'ckpt'), line, { cwd: scratch.root, env: vars, encoding: 'utf8' })
    if (done.status !== 0) throw new Error(`agent install ${agent}: ${done.stdout}${done.stderr}`)
  }
  return {
    argv,
    vars,
    turn: (prompt, from) =>
      new Promise((resolve) => {
        const child = spawn(argv[0]!, [...argv.slice(1), ...client.once(prompt, from)], {
          cwd: scratch.root,
          env: vars,
          stdio: ['ignore', 'pipe', 'pipe'],
        })
        let output = ''
        const take = (chunk: Buffer) => {
          output += chunk.toString('utf8')
        }
        child.stdout.on('data', take)
        child.stderr.on('data', take)
        child.on('close', (code) => {
          const session = /"(?:session_id|thread_id|sessionID)":"([^"]+)"/.exec(output)?.[1] ?? ''
          resolve({ code: code ?? 128, session, output })
        })
      }),
  }
}
