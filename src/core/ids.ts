import { CkptError } from './errors.ts'

/** A git object id: 40 (SHA-1) or 64 (SHA-256) lower-case hex digits. */
export type Oid = string & { readonly __brand: 'Oid' }
/** What a repository makes its object ids with. */
export type HashName = 'sha1' | 'sha256'
/** The agent's own session id, exactly as it sent it. */
export type SessionId = string & { readonly __brand: 'SessionId' }
/** A turn's number in its session, from 1; never used twice. */
export type TurnNumber = number & { readonly __brand: 'TurnNumber' }

const oidPattern = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/

export function parseOid(text: string): Oid {
  if (!oidPattern.test(text)) throw new CkptError('INTERNAL', `not an object id: ${JSON.stringify(text.slice(0, 80))}`)
  return text as Oid
}

export function isOid(text: string): text is Oid {
  return oidPattern.test(text)
}

export function isSessionId(text: string): text is SessionId {
  return text !== '' && Buffer.byteLength(text) <= 1024 && !/[\x00-\x1f\x7f]/.test(text) && text.isWellFormed()
}

/** @throws CkptError BAD_MARKER for an empty id, one over 1,024 bytes, or one that holds control characters or is no text. */
export function parseSessionId(text: string): SessionId {
  if (!isSessionId(text)) {
    throw new CkptError(
      'BAD_MARKER',
      'A session id is 1 to 1024 bytes without control characters. Nothing was recorded.',
      {
        hints: ['ckpt list --sessions'],
      },
    )
  }
  return text
}

export const MANUAL_SESSION = 'manual' as SessionId

/**
 * A session id as one component of a ref name: lower-case letters, digits, `_` and `-` stand for themselves, any other
 * byte is `=XX`. Ids that would grow past 120 characters are cut and given a hash by the caller's `digest`.
 */
export function encodeSession(session: SessionId, digest: (text: string) => string): string {
  let name = ''
  for (const byte of Buffer.from(session, 'utf8')) {
    const c = String.fromCharCode(byte)
    name += /[a-z0-9_-]/.test(c) ? c : `=${byte.toString(16).padStart(2, '0')}`
  }
  return name.length <= 120 ? name : `${name.slice(0, 80)}=_${digest(session).slice(0, 32)}`
}

/** What a person may write where an id is asked for. */
export type Target =
  | { kind: 'turn'; turn: TurnNumber }
  | { kind: 'step'; turn: TurnNumber; step: number }
  | { kind: 'edge'; turn: TurnNumber; edge: 'before' | 'after' }
  | { kind: 'turn-id'; prefix: string }
  | { kind: 'checkpoint'; prefix: string }
  | { kind: 'worktree' }

/** A state that was recorded. */
export type Place = Exclude<Target, { kind: 'worktree' }>

/** What one goes back to. @throws CkptError USAGE */
export function parsePlace(text: string): Place {
  const target = parseTarget(text)
  if (target.kind !== 'worktree') return target
  throw new CkptError('USAGE', '`worktree` is not a place to go back to. Nothing was changed.', {
    hints: ['ckpt list'],
  })
}

/** What is undone alone. @throws CkptError USAGE also for a step */
export function parseAlone(text: string): Place {
  const place = parsePlace(text)
  if (place.kind !== 'step') return place
  throw new CkptError('USAGE', '--only takes a whole turn alone, and no step of one. Nothing was changed.', {
    hints: [`ckpt undo --to ${text}   (that step, and what came after it)`, `ckpt undo --only ${place.turn}`],
  })
}

/** @throws CkptError USAGE when the text has none of the forms. */
export function parseTarget(text: string): Target {
  if (text === 'worktree') return { kind: 'worktree' }
  if (/^[0-9]{1,9}$/.test(text)) return { kind: 'turn', turn: Number(text) as TurnNumber }
  const step = /^([0-9]{1,9})\.([0-9]{1,9})$/.exec(text)
  if (step) return { kind: 'step', turn: Number(step[1]) as TurnNumber, step: Number(step[2]) }
  const edge = /^([0-9]{1,9}):(before|after)$/.exec(text)
  if (edge) return { kind: 'edge', turn: Number(edge[1]) as TurnNumber, edge: edge[2] as 'before' | 'after' }
  if (/^t[0-9a-f]{12}$/.test(text)) return { kind: 'turn-id', prefix: text.slice(1) }
  if (/^[0-9a-f]{4,64}$/i.test(text)) return { kind: 'checkpoint', prefix: text.toLowerCase() } // as git takes them
  throw new CkptError(
    'USAGE',
    `${JSON.stringify(text)} is not an id: give a turn (3), a step (3.2), 3:before, 3:after, or at least 4 hex digits of a checkpoint. Nothing was changed.`,
    { hints: ['ckpt list'] },
  )
}
