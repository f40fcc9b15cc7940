/** What undo, redo, restore and switch begin with, and what they give. */
import type { BoundaryHead } from '../../core/boundary.ts'
import type { Checkpoint } from '../../core/checkpoint.ts'
import type { SessionId, TurnNumber } from '../../core/ids.ts'
import type { ToldAction } from '../../core/plan.ts'
import type { Stat } from '../../git/diff.ts'
import type { WorktreeRefs } from '../../git/history.ts'
import type { Snapshot } from '../record/record.ts'

export interface ChangeResult {
  session: SessionId
  dryRun: boolean
  turns: TurnNumber[]
  /** What was gone back to, where that is not a turn as it ended. */
  checkpoint?: Checkpoint
  boundary: { record: BoundaryHead; hidden: TurnNumber[] } | null
  restoredPrompt: string | null
  files: ToldAction[]
  /** From a backend that counts lines and files itself. */
  summary?: Stat
  safety: string | null
  token?: string
  /** Of a dry run: the store has lost what it needs, so that it would be refused. */
  isLost?: boolean
  ms: number
  syncMs: number
  warnings: string[]
  /** Claude and others: what to rewind in the conversation. */
  messageId: string | null
  agent?: string | null
}

/** When it was asked for, and the hash of the plan that a dry run told (undefined: none). */
export interface Asked {
  /** By `env.monotonic()`, in milliseconds. */
  arrived: number
  expected?: string | undefined
}

/** Refs and a scan that are under way. */
export interface Scanned {
  reading: Promise<WorktreeRefs>
  scanning: Promise<Snapshot>
}
