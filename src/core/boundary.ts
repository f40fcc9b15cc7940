/** The record of a pending revert boundary: what each hidden turn's undo did, so that redo is its exact inverse. */
import { CkptError } from './errors.ts'
import { isOid, type Oid, type SessionId, type TurnNumber } from './ids.ts'
import { isMode, type PathState, type Transition } from './state.ts'

export interface UndoneUnit {
  turn: TurnNumber
  /** Null: the whole turn. */
  step: number | null
  /** What undoing it did, per path; redo does the inverse. */
  changes: Transition[]
  /** With what came outside the turn's steps since `step` began. */
  unclaimed?: true
}

export interface BoundaryRecord {
  session: SessionId
  /** The first turn that is undone, wholly or from `step` on. */
  turn: TurnNumber
  step: number | null
  messageId: string | null
  /** In the order in which they were undone: redo takes them from the end. */
  units: UndoneUnit[]
  /** The safety checkpoint made by the first undo of this boundary. */
  baseline: Oid
}

/** How many turns a redo brings back to be at the end of `last`. */
export const turnsToRedo = ({ units }: BoundaryRecord, last: number): number =>
  new Set(units.map(({ turn }) => turn).filter((turn) => turn <= last)).size

/** What is told of a boundary; a backend that keeps its sessions itself has no record behind it. */
export type BoundaryHead = Omit<BoundaryRecord, 'units' | 'baseline'> & { baseline: Oid | null }

type StoredChange = [path: string, from: PathState, to: PathState, implied?: true]

interface StoredRecord {
  version: 1
  session: string
  turn: number
  step: number | null
  messageId: string | null
  baseline: string
  units: { turn: number; step: number | null; changes: StoredChange[]; unclaimed?: true }[]
}

export function formatRecord(record: BoundaryRecord): Buffer {
  const stored: StoredRecord = {
    version: 1,
    session: record.session,
    turn: record.turn,
    step: record.step,
    messageId: record.messageId,
    baseline: record.baseline,
    units: record.units.map((unit) => ({
      turn: unit.turn,
      step: unit.step,
      changes: unit.changes.map(({ path, from, to, implied }) =>
        implied ? [path, from, to, implied] : [path, from, to],
      ),
      ...(unit.unclaimed ? { unclaimed: true } : {}),
    })),
  }
  return Buffer.from(`${JSON.stringify(stored)}\n`, 'utf8')
}

function placeOf({ turn, step }: { turn: number; step: number | null }): Pick<UndoneUnit, 'turn' | 'step'> {
  const counts = (number: number) => Number.isSafeInteger(number) && number > 0
  if (!counts(turn) || (step !== null && !counts(step))) throw new Error(`turn ${turn}, step ${step}`)
  return { turn: turn as TurnNumber, step }
}

function isState(state: PathState): boolean {
  if (state.kind === 'present')
    return (state.type === 'file' || state.type === 'link') && isOid(String(state.oid)) && isMode(state.mode)
  return state.kind === 'absent' || state.kind === 'unknown' || (state.kind === 'directory' && isMode(state.mode))
}

/** @throws CkptError DAMAGED */
export function parseRecord(bytes: Buffer): BoundaryRecord {
  try {
    const stored = JSON.parse(bytes.toString('utf8')) as StoredRecord
    if (stored.version !== 1) throw new Error(`version ${String(stored.version)}`)
    if (typeof stored.session !== 'string' || !isOid(String(stored.baseline))) throw new Error('no session or baseline')
    if (stored.units.length === 0) throw new Error('nothing is undone')
    return {
      session: stored.session as SessionId,
      ...placeOf(stored),
      messageId: stored.messageId,
      baseline: stored.baseline as Oid,
      units: stored.units.map((unit) => ({
        ...placeOf(unit),
        changes: unit.changes.map(([path, from, to, implied]) => {
          if (typeof path !== 'string' || !isState(from) || !isState(to)) throw new Error('a change of no path')
          return { path, from, to, ...(implied ? { implied } : {}) }
        }),
        ...(unit.unclaimed ? { unclaimed: true } : {}),
      })),
    }
  } catch (cause) {
    throw new CkptError('DAMAGED', 'The record of the revert boundary cannot be read. Nothing was changed.', {
      hints: ['ckpt verify', 'ckpt accept'],
      cause,
    })
  }
}

/** The first of its turns that is not among these; null: each of them is. */
export function lostTurn({ turn, units }: BoundaryRecord, there: ReadonlySet<TurnNumber>): TurnNumber | null {
  return [turn, ...units.map((unit) => unit.turn)].find((one) => !there.has(one)) ?? null
}

/** All objects a record needs, so that they are kept. */
export function recordObjects(record: BoundaryRecord): Set<Oid> {
  const oids = new Set<Oid>()
  for (const unit of record.units) {
    for (const { from, to } of unit.changes) {
      for (const state of [from, to]) if (state.kind === 'present') oids.add(state.oid)
    }
  }
  return oids
}
