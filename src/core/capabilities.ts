/** What a session's backend may be able to do. Whoever shows a session asks for these, never for the backend's name. */
import { CkptError } from './errors.ts'

/** Every capability, with what it lets a person do. */
export const CAPABILITIES = {
  supportsUndo: 'take turns back',
  supportsRedo: 'bring undone turns back',
  supportsStepUndo: 'take single steps of a turn back',
  supportsSelectiveUndo: 'take one turn or some paths back and keep the rest',
  supportsDiff: 'show what turns changed',
  supportsFork: 'go on from any earlier turn',
  supportsReconnect: 'keep what is undone over a restart',
  supportsCommands: 'record slash commands as turns',
  supportsPermissionRequests: 'ask for permission before a tool runs',
  supportsQuestionPrompts: 'ask the person questions',
  supportsModelSelection: 'change the model',
  supportsPartialStreaming: 'show an answer while it comes',
} as const

export type Capability = keyof typeof CAPABILITIES

/** Which of them a session has. */
export type Capabilities = Readonly<Record<Capability, boolean>>

const NAMES = Object.keys(CAPABILITIES) as Capability[]

/** Each capability, true or false: true are those named. @throws CkptError USAGE for a name that is none */
export function withCapabilities(there: readonly Capability[]): Capabilities {
  const isNone = (name: unknown) => !NAMES.includes(name as Capability)
  if (!Array.isArray(there) || there.some(isNone)) {
    const other = Array.isArray(there) ? there.find(isNone) : there
    throw new CkptError('USAGE', `${String(other)} is none of these capabilities: ${NAMES.join(', ')}.`)
  }
  return Object.fromEntries(NAMES.map((name) => [name, there.includes(name)])) as Capabilities
}
