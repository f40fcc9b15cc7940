/** The real SDK from npm, in a worktree of the test's own, with the model on loopback. */
import fs from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import {
  type ClaudeAgent,
  type ClaudeAgentOptions,
  openClaudeAgent,
} from '../../src/wrappers/claude-agent-sdk/agent.ts'
import type { AgentSdk } from '../../src/wrappers/claude-agent-sdk/sdk.ts'
import { clientPackage } from './clients.ts'
import { Scratch } from './scratch.ts'
import { type Model, startModel } from './told-model.ts'

export const sdkDirectory = clientPackage('claude-agent-sdk', '@anthropic-ai/claude-agent-sdk')
export const sdkFile = sdkDirectory && path.join(sdkDirectory, 'sdk.mjs')

export const loadSdk = async (): Promise<AgentSdk> => import(pathToFileURL(sdkFile!).href)

export interface Stage {
  scratch: Scratch
  model: Model
  /** Of every query. */
  options: Record<string, unknown>
  open: (given?: Partial<ClaudeAgentOptions<AgentSdk>>) => Promise<ClaudeAgent>
  /** The bytes of a session's transcript. */
  transcript: (session: string) => string
}

export async function claudeStage(): Promise<Stage> {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'b.txt': 'b\n' })
  const model = await startModel(scratch.root)
  const env = { ...scratch.vars, ...claudeVars(model) }
  const options = {
    env,
    model: 'claude-sonnet-4-5',
    permissionMode: 'bypassPermissions',
    allowDangerouslySkipPermissions: true,
    settingSources: [],
  }
  const sdk = await loadSdk()
  return {
    scratch,
    model,
    options,
    open: (given = {}) => openClaudeAgent(scratch.root, { sdk, options, vars: scratch.vars, ...given }),
    transcript: (session) => {
      const projects = path.join(scratch.home, '.claude/projects')
      const [directory] = fs
        .readdirSync(projects)
        .filter((one) => fs.existsSync(path.join(projects, one, `${session}.jsonl`)))
      return fs.readFileSync(path.join(projects, directory!, `${session}.jsonl`), 'utf8')
    },
  }
}

/** No key that is one, nothing sent anywhere else. */
export const claudeVars = ({ url }: Pick<Model, 'url'>): Record<string, string> => ({
  ANTHROPIC_BASE_URL: url,
  ANTHROPIC_API_KEY: 'none',
  IS_SANDBOX: '1',
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  DISABLE_TELEMETRY: '1',
  DISABLE_ERROR_REPORTING: '1',
  DISABLE_AUTOUPDATER: '1',
})

/** One prompt, to its end; the last words. */
export async function say(agent: ClaudeAgent, prompt: string, options?: object): Promise<string> {
  let said = ''
  for await (const message of agent.query({ prompt, options }))
    if (message.type === 'result') said = String(message.result)
  return said
}
