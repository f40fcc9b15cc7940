/**
 * What a marker does to a session, as declared actions: the caller carries them out. The states are those of a session's
 * last turn and of its boundary.
 */
const SESSION_STATES = ['none', 'idle', 'running', 'pending'] as const
/** none: no turn yet. idle: the last turn ended. running: it has not. pending: a revert boundary is pending. */
export type SessionState = (typeof SESSION_STATES)[number]

/**
 * notice: an agent hears of a task that it runs in the background. go-on: a subagent's call begins, or ends, in the turn that ended last. stop-again: that turn ends once more, for its agent had been
 * sent back to work.
 */
const SESSION_EVENTS = [
  'prompt',
  'notice',
  'step-start',
  'go-on',
  'step',
  'stop',
  'stop-again',
  'undo',
  'redo',
  'accept',
] as const
export type SessionEvent = (typeof SESSION_EVENTS)[number]

type Action =
  | 'close-interrupted' // an `after` for the running turn, its end inferred
  | 'abandon-hidden' // hidden turns become abandoned, the boundary is cleared
  | 'open-turn' // a `before`
  | 'open-window' // a step's start marker
  | 'add-step'
  | 'end-turn' // an `after`
  | 'late' // a checkpoint that belongs to no turn
  | 'hide' // the boundary moves back
  | 'unhide' // the boundary moves forward, or is cleared
  | 'refuse-not-found'
  | 'refuse-running'
  | 'refuse-nothing-to-undo'
  | 'refuse-nothing-to-redo'
  | 'nothing'

export interface Reaction {
  actions: readonly Action[]
  next: SessionState | 'idle|pending' | 'idle|running'
}

const table: Record<SessionState, Record<SessionEvent, Reaction>> = {
  none: {
    prompt: { actions: ['open-turn'], next: 'running' },
    notice: { actions: ['open-turn'], next: 'running' },
    'step-start': { actions: ['refuse-not-found'], next: 'none' },
    'go-on': { actions: ['refuse-not-found'], next: 'none' },
    step: { actions: ['refuse-not-found'], next: 'none' },
    stop: { actions: ['refuse-not-found'], next: 'none' },
    'stop-again': { actions: ['refuse-not-found'], next: 'none' },
    undo: { actions: ['refuse-nothing-to-undo'], next: 'none' },
    redo: { actions: ['refuse-nothing-to-redo'], next: 'none' },
    accept: { actions: ['nothing'], next: 'none' },
  },
  idle: {
    prompt: { actions: ['open-turn'], next: 'running' },
    notice: { actions: ['late'], next: 'idle' },
    'step-start': { actions: ['late'], next: 'idle' },
    'go-on': { actions: ['open-window', 'add-step'], next: 'idle|running' },
    step: { actions: ['late'], next: 'idle' },
    stop: { actions: ['late'], next: 'idle' },
    'stop-again': { actions: ['end-turn'], next: 'idle' },
    undo: { actions: ['hide'], next: 'pending' },
    redo: { actions: ['refuse-nothing-to-redo'], next: 'idle' },
    accept: { actions: ['nothing'], next: 'idle' },
  },
  running: {
    prompt: { actions: ['close-interrupted', 'open-turn'], next: 'running' },
    notice: { actions: ['late'], next: 'running' },
    'step-start': { actions: ['open-window'], next: 'running' },
    'go-on': { actions: ['open-window', 'add-step'], next: 'idle|running' },
    step: { actions: ['add-step'], next: 'running' },
    stop: { actions: ['end-turn'], next: 'idle' },
    'stop-again': { actions: ['end-turn'], next: 'idle' },
    undo: { actions: ['refuse-running'], next: 'running' },
    redo: { actions: ['refuse-running'], next: 'running' },
    accept: { actions: ['nothing'], next: 'running' },
  },
  pending: {
    prompt: { actions: ['abandon-hidden', 'open-turn'], next: 'running' },
    notice: { actions: ['late'], next: 'pending' },
    'step-start': { actions: ['late'], next: 'pending' },
    'go-on': { actions: ['late'], next: 'pending' },
    step: { actions: ['late'], next: 'pending' },
    stop: { actions: ['late'], next: 'pending' },
    'stop-again': { actions: ['late'], next: 'pending' },
    undo: { actions: ['hide'], next: 'pending' },
    redo: { actions: ['unhide'], next: 'idle|pending' },
    accept: { actions: ['abandon-hidden'], next: 'idle' },
  },
}

export function react(state: SessionState, event: SessionEvent): Reaction {
  return table[state][event]
}

export function sessionState(facts: { turns: number; running: boolean; pending: boolean }): SessionState {
  if (facts.pending) return 'pending'
  if (facts.turns === 0) return 'none'
  return facts.running ? 'running' : 'idle'
}

/** The table as a Mermaid state diagram, for the docs. */
export function drawMachine(): string {
  const lines = ['stateDiagram-v2', '  [*] --> none']
  for (const state of SESSION_STATES) {
    for (const event of SESSION_EVENTS) {
      const { actions, next } = react(state, event)
      for (const to of next.split('|')) lines.push(`  ${state} --> ${to}: ${event} / ${actions.join(', ')}`)
    }
  }
  return `${lines.join('\n')}\n`
}
