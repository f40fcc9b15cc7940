/** docs/states.md is drawn from the table of `core/machine.ts`: here each of its rows is done, and seen to be so. */
import { expect, test } from 'vitest'
import { react, type SessionState, sessionState } from '../../src/core/machine.ts'
import { type Json, Scratch } from '../support/scratch.ts'

const SESSION = ['--session', 's']
const mark = (...words: string[]) => ['mark', ...words, ...SESSION]

/** How a session comes into each state. There are two turns where there are any: an undo leaves one, and the next has a number to go on from. */
const STATES: Record<SessionState, (scratch: Scratch) => void> = {
  none: (scratch) => scratch.ckpt('snapshot'),
  idle: (scratch) => {
    for (const n of ['1', '2']) scratch.turn(n, () => scratch.write({ [n]: n }))
  },
  running: (scratch) => {
    scratch.turn('1', () => scratch.write({ 1: '1' }))
    scratch.ckpt(...mark('prompt'))
    scratch.write({ 2: '2' })
  },
  pending: (scratch) => {
    STATES.idle(scratch)
    scratch.ckpt('undo')
  },
}

const EVENTS = {
  prompt: mark('prompt'),
  'step-start': mark('step', '--start', '--call-id', 'c'),
  step: mark('step'),
  stop: mark('stop'),
  undo: ['undo'],
  redo: ['redo'],
  accept: ['accept'],
} as const

/** The error of an action that refuses. */
const REFUSED: Record<string, string> = {
  'refuse-not-found': 'NOT_FOUND',
  'refuse-running': 'TURN_RUNNING',
  'refuse-nothing-to-undo': 'NOTHING_TO_UNDO',
  'refuse-nothing-to-redo': 'NOTHING_TO_REDO',
}

interface Facts {
  turns: Json[]
  hidden: number
  state: SessionState
}

function look(scratch: Scratch): Facts {
  const { code, document } = scratch.tryCkpt('list', '--hidden', ...SESSION)
  if (code !== 0) return { turns: [], hidden: 0, state: 'none' }
  const turns: Json[] = document.turns
  const [pending, running] = [document.boundary !== null, turns.some(({ status }) => status === 'running')]
  const hidden = turns.filter((turn) => turn.hidden).length
  return { turns, hidden, state: sessionState({ turns: turns.length, running, pending }) }
}

/** What each action leaves that is done. */
const DONE: Record<string, (before: Facts, after: Facts, answer: Json) => void> = {
  'open-turn': ({ turns }, after) => expect(after.turns[0].n).toBeGreaterThan(turns[0]?.n ?? 0),
  'close-interrupted': ({ turns }, after) =>
    expect(after.turns.find(({ n }) => n === turns[0].n)).toMatchObject({ status: 'interrupted' }),
  'abandon-hidden': (before, { hidden, turns }, answer) => {
    expect([before.hidden, hidden, answer.abandoned]).toEqual([1, 0, [2]])
    expect(turns.map(({ n }) => n)).not.toContain(2)
  },
  'open-window': (_, __, { checkpoint }) => expect(checkpoint).toMatchObject({ kind: 'step', step: '2.1' }),
  'add-step': (_, { turns }) => expect(turns[0].steps).toHaveLength(1),
  'end-turn': (_, { turns }) => expect(turns[0].status).toBe('completed'),
  late: (before, after, { checkpoint }) => {
    expect(checkpoint.late).toBe(true)
    expect(after.turns).toEqual(before.turns)
  },
  hide: (before, { hidden }) => expect(hidden).toBe(before.hidden + 1),
  unhide: (before, { hidden }) => expect(hidden).toBe(before.hidden - 1),
  nothing: (before, after) => expect(after).toEqual(before),
}

const rows = (['none', 'idle', 'running', 'pending'] as const).flatMap((state) =>
  (Object.keys(EVENTS) as (keyof typeof EVENTS)[]).map((event) => [state, event] as const),
)

test.each(rows)('%s: %s', (state, event) => {
  const scratch = new Scratch().init()
  STATES[state](scratch)
  const before = look(scratch)
  expect(before.state).toBe(state)
  const { actions, next } = react(state, event)
  const { code, document } = scratch.tryCkpt(...EVENTS[event])
  const after = look(scratch)
  expect(next.split('|')).toContain(after.state)
  for (const action of actions) {
    if (action in REFUSED) {
      expect([code === 0, document.error?.code]).toEqual([false, REFUSED[action]])
      expect(after).toEqual(before)
    } else {
      expect([action, code, document.error]).toEqual([action, 0, undefined])
      DONE[action]!(before, after, document)
    }
  }
})
