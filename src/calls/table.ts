/** The calls and their checks. Loaded when the first one comes: the checks cost more to load than most calls take. */
import type { MethodTable } from './methods.ts'
import * as schema from './schema.ts'
import * as sessions from './sessions.ts'
import * as snapshots from './snapshots.ts'
import * as timeline from './timeline.ts'

export const methods: MethodTable = {
  'snapshots.track': { takes: schema.trackRequest, run: snapshots.track, reads: false },
  'snapshots.patch': { takes: schema.patchRequest, run: snapshots.patch, reads: true },
  'snapshots.revert': { takes: schema.revertPatchRequest, run: snapshots.revertPatch, reads: false },
  'snapshots.restore': { takes: schema.restoreRequest, run: snapshots.restoreFiles, reads: false },
  'snapshots.diff': { takes: schema.diffRequest, run: snapshots.compare, reads: true },
  'snapshots.diffFull': { takes: schema.diffRequest, run: snapshots.compareFully, reads: true },
  'snapshots.cleanup': { takes: schema.cleanupRequest, run: snapshots.cleanup, reads: false },
  'sessions.list': { takes: schema.nothing, run: sessions.list, reads: true },
  'sessions.getSessionInfo': { takes: schema.sessionRequest, run: sessions.getSessionInfo, reads: true },
  'sessions.undo': { takes: schema.undoRequest, run: sessions.undo, reads: false },
  'sessions.redo': { takes: schema.redoRequest, run: sessions.redo, reads: false },
  'sessions.revert': { takes: schema.revertRequest, run: sessions.revert, reads: false },
  'sessions.unrevert': { takes: schema.unrevertRequest, run: sessions.unrevert, reads: false },
  'sessions.cleanupRevertedHistory': {
    takes: schema.sessionRequest,
    run: sessions.cleanupRevertedHistory,
    reads: false,
  },
  'sessions.capabilities': { takes: schema.sessionRequest, run: sessions.capabilities, reads: true },
  'sessions.setBackend': { takes: schema.setBackendRequest, run: sessions.setBackend, reads: false },
  mark: { takes: schema.markRequest, run: timeline.mark, reads: false },
  turns: { takes: schema.turnsRequest, run: timeline.turns, reads: true },
  show: { takes: schema.showRequest, run: timeline.show, reads: true },
  switchTo: { takes: schema.switchRequest, run: timeline.switchTo, reads: false },
  apply: { takes: schema.applyRequest, run: timeline.apply, reads: false },
}
