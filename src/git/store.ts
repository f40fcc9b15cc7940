/** The store: a private bare git repository beside the user's, and one directory for each worktree. */
import { constants } from 'node:fs'
import type { Checkpoint } from '../core/checkpoint.ts'
import { CkptError } from '../core/errors.ts'
import { type HashName, isOid, type Oid } from '../core/ids.ts'
import { printable } from '../core/paths.ts'
import { type Env, lstatIfThere } from '../env.ts'
import { LineProcess } from './line-process.ts'
import { ObjectStore } from './objects.ts'
import { type GitCall, runGit, tryGit } from './process.ts'
import {
  clearRefLock,
  listRefs,
  messageOf,
  moveRefs,
  plainTips,
  type RefEdit,
  type RefTip,
  refuseUnreadable,
  transaction,
} from './refs.ts'
import type { GitResult } from './result.ts'
import { goneRef, noteMoves, writtenTips } from './tips.ts'
import { Trees } from './trees.ts'
import { UnsyncedRefs } from './unsynced-refs.ts'
import { readIfThere, writeFileWhole } from './whole-file.ts'

/** Where a worktree's checkpoints are. */
export interface StorePlace {
  /** `<git-common-dir>/ckpt`, or the state directory's part for a plain directory. */
  directory: string
  worktreeId: string
  hash: HashName
  /** The directory that it is named after, where it lies apart from that. */
  owner?: string
}

interface RefMemory {
  generation: string
  tips: Map<string, RefTip>
  updater: LineProcess
  durableUpdater: LineProcess
}

/** What git is told are object ids: it need not look for refs of such names, a dozen files for each. */
const WHOLE_OIDS = ['-c', 'core.warnAmbiguousRefs=false']
const LOCK_ATTEMPTS = 200

export class Store {
  readonly place: StorePlace
  readonly gitDir: string
  /** This worktree's own directory: index, journal, lock. */
  readonly worktreeDir: string
  readonly vars: Record<string, string>
  readonly objects: ObjectStore
  readonly trees: Trees
  /** Checkpoints that were read or written, as their commits say: a turn of hundreds of steps is not read again for each. */
  readonly checkpoints: Map<Oid, Checkpoint>
  readonly #env: Env
  #shallow: ReadonlySet<Oid> | null = null
  #memory: RefMemory | null = null
  readonly #unsynced = new UnsyncedRefs()
  /** None of the refs that were read last is gone. */
  #whole = false
  readonly #owner: Store | null

  /** `owner`: the same store as another worktree has it open; its objects are read and written through that one. */
  private constructor(env: Env, place: StorePlace, owner: Store | null) {
    this.#env = env
    this.#owner = owner
    this.place = place
    this.gitDir = `${place.directory}/store.git`
    this.worktreeDir = `${place.directory}/worktrees/${place.worktreeId}`
    this.vars = storeVariables(this.gitDir)
    this.objects = owner?.objects ?? new ObjectStore(env, { gitDir: this.gitDir, hash: place.hash, vars: this.vars })
    this.trees = owner?.trees ?? new Trees(this.objects)
    this.checkpoints = owner?.checkpoints ?? new Map()
  }

  static open(env: Env, place: StorePlace): Store {
    return new Store(env, place, null)
  }

  /** The same store for another of its worktrees. */
  of(worktreeId: string): Store {
    return new Store(this.#env, { ...this.place, worktreeId }, this.#owner ?? this)
  }

  /** `refs/ckpt/<worktree>/`, with the slash. */
  get refPrefix(): string {
    return `refs/ckpt/${this.place.worktreeId}/`
  }

  /** Prompts of this worktree's turns (git-notes(1)). */
  get notesRef(): string {
    return `refs/notes/ckpt/${this.place.worktreeId}`
  }

  /** From here on refs are kept in memory, and moved by processes that stay: for one that lives long. */
  remember(): void {
    const call = (args: string[]) => ({ args, cwd: this.gitDir, vars: this.vars })
    this.objects.hurried = true
    this.#memory = {
      generation: '',
      tips: new Map(),
      updater: new LineProcess(this.#env, call([...WHOLE_OIDS, 'update-ref', '--stdin'])),
      durableUpdater: new LineProcess(
        this.#env,
        call([...WHOLE_OIDS, '-c', 'core.fsync=reference', 'update-ref', '--stdin']),
      ),
    }
  }

  get remembers(): boolean {
    return this.#memory !== null
  }

  async refs(...prefixes: string[]): Promise<RefTip[]> {
    const memory = this.#memory
    if (!memory) return this.#list(prefixes)
    const generation = this.generation
    if (memory.generation !== generation || generation === '') {
      this.forget()
      const tips = await this.#list(['refs/'])
      memory.tips = new Map(tips.map((tip) => [tip.ref, tip]))
      memory.generation = generation
      this.#whole = false
    }
    return [...memory.tips.values()].filter(({ ref }) =>
      prefixes.some((prefix) => ref === prefix || ref.startsWith(prefix.endsWith('/') ? prefix : `${prefix}/`)),
    )
  }

  async #list(prefixes: readonly string[]): Promise<RefTip[]> {
    return plainTips(this.#env, this, prefixes) ?? (await listRefs(this.#env, this, prefixes))
  }

  /**
   * The same; this worktree's own are among them. Looked at once: a ref that is gone is not one that never was.
   * @throws CkptError DAMAGED when one is gone that nobody of us removed
   */
  async wholeRefs(...prefixes: string[]): Promise<RefTip[]> {
    let tips = await this.refs(...prefixes)
    for (let before: string | null = null; !this.#whole; ) {
      const written = writtenTips(this.#env, this.place.directory, this.place.worktreeId)
      const gone = goneRef(written, tips)
      if (gone === null) this.#whole = true
      else if (written === before) {
        refuseUnreadable(this.#env, this.gitDir, [gone.ref])
        throw refGone(gone.ref, gone.was)
      } else {
        // Somebody may have moved refs between the two looks: nobody did if what is written down stays the same.
        before = written
        if (this.#memory) this.#memory.generation = ''
        tips = await this.refs(...prefixes)
      }
    }
    return tips
  }

  /** Changes with every move of a ref, whoever makes it. */
  get generation(): string {
    return readIfThere(this.#env, `${this.place.directory}/generation`)?.toString('latin1') ?? ''
  }

  /** Somebody else was here, and may have pruned: what was known to be stored may be gone. */
  forget(): void {
    this.objects.forget()
    this.trees.forget()
    this.checkpoints.clear()
    this.#shallow = null
  }

  /** For others that live long: objects go, or went. */
  announce(): void {
    const { files, now } = this.#env
    // It is empty, for the disk may be full.
    files.closeSync(files.openSync(this.#removal, 'a', 0o600))
    files.utimesSync(this.#removal, now() / 1000, now() / 1000)
    this.#bump()
  }

  /** Changes whenever objects go; null: none ever did. What was only looked at may rest on some of them. */
  get removal(): string | null {
    const stats = lstatIfThere(this.#env.files, this.#removal)
    return stats && `${stats.ino} ${stats.ctimeMs}`
  }

  get #removal(): string {
    return `${this.place.directory}/removal`
  }

  #bump(): string {
    const generation = this.#env.random(8)
    const inStep = this.#memory?.generation === this.generation
    const { files } = this.#env
    // In place, for it is always as long: ext4 takes hundreds of times as long to cut a file off and write it again.
    const fd = files.openSync(`${this.place.directory}/generation`, constants.O_WRONLY | constants.O_CREAT, 0o600)
    try {
      files.writeSync(fd, generation, 0, 'latin1')
    } finally {
      files.closeSync(fd)
    }
    // Our own doing: nobody who reads the refs meanwhile has to take it for somebody else's.
    if (this.#memory && inStep) this.#memory.generation = generation
    return generation
  }

  /**
   * One transaction. Lock files of killed git processes are cleared: this worktree's at once, shared ones when they are old.
   * `durable`: on disk when it returns, with the objects that were written; one that lives on may sync them later.
   */
  async moveRefs(edits: readonly RefEdit[], { durable = this.#memory === null } = {}): Promise<void> {
    if (durable) await this.#sync()
    else this.objects.flush()
    const moved = noteMoves(this.#env, this.place.directory, { edits, sync: durable })
    for (let attempt = 0; ; attempt++) {
      // Said before it is done: who is killed in between leaves nobody with an old idea of the refs.
      this.#bump()
      try {
        if (!(await this.#moveQuickly(edits, durable)) && !(await this.#areMoved(edits)))
          await moveRefs(this.#env, this, { edits, durable })
        moved()
        if (!durable) this.#unsynced.add(edits)
        // And once more: who read the refs in between, without the lock, must not take them for those of now.
        await this.#learn(edits, this.#bump())
        return
      } catch (error) {
        const lock =
          error instanceof CkptError
            ? /Unable to create '([^']+\.lock)': File exists/.exec(error.message)?.[1]
            : undefined
        if (lock === undefined || attempt >= LOCK_ATTEMPTS) {
          if (this.#memory) this.#memory.generation = '' // they may not be as they were remembered
          throw error
        }
        // The caller holds the worktree's lock: nobody else writes these refs.
        const own = lock.includes(`/${this.refPrefix}`) || lock.includes(`/${this.notesRef}`)
        await clearRefLock(this.#env, lock, { own, clock: this.worktreeDir })
      }
    }
  }

  /** Syncs what was written and moved before. */
  async #sync(): Promise<void> {
    await this.objects.syncFresh()
    this.#unsynced.sync(this.#env, this.place.directory)
  }

  /** The same for one who has others to serve meanwhile: `others` waits until they are served. */
  async syncInSteps(others: () => Promise<unknown>): Promise<void> {
    await this.objects.syncFreshInSteps(others)
    await this.#sync() // what the others wrote, before any ref that they moved
  }

  /** False: the one-shot way is to say what is wrong. */
  async #moveQuickly(edits: readonly RefEdit[], durable: boolean): Promise<boolean> {
    const memory = this.#memory
    if (!memory || edits.length === 0) return edits.length === 0
    try {
      const updater = durable ? memory.durableUpdater : memory.updater
      const answers = await updater.ask(`start\n${transaction(edits)}\nprepare\ncommit\n`, 3)
      return answers.join(' ') === 'start: ok prepare: ok commit: ok'
    } catch (error) {
      if (error instanceof CkptError) return false
      throw error
    }
  }

  /** Whether the quick way moved them, and was killed before it could say so. */
  async #areMoved(edits: readonly RefEdit[]): Promise<boolean> {
    if (!this.#memory) return false
    const tips = await listRefs(
      this.#env,
      this,
      edits.map(({ ref }) => ref),
    )
    const now = new Map(tips.map(({ ref, oid }) => [ref, oid]))
    return edits.every(({ ref, to }) => (now.get(ref) ?? null) === to)
  }

  /** What was moved is known without asking, unless somebody else moved something too. */
  async #learn(edits: readonly RefEdit[], generation: string): Promise<void> {
    const memory = this.#memory
    if (!memory) return
    for (const { ref, to } of edits) {
      if (to === null) {
        memory.tips.delete(ref)
        continue
      }
      const object = await this.objects.read(to)
      const contents = object ? messageOf(object) : ''
      memory.tips.set(ref, { ref, oid: to, type: object?.type ?? '', contents })
    }
    memory.generation = generation
  }

  /** Runs git on the store, with its isolation. */
  git(args: readonly string[], more: Pick<GitCall, 'input' | 'onOutput' | 'vars' | 'signal' | 'begun'> = {}) {
    this.objects.flush()
    return runGit(this.#env, { args, cwd: this.gitDir, ...more, vars: { ...this.vars, ...more.vars } })
  }

  /** The same where git's own exit code is the answer. */
  tryGit(args: readonly string[], { input }: { input?: string } = {}): Promise<GitResult> {
    this.objects.flush()
    return tryGit(this.#env, { args, cwd: this.gitDir, vars: this.vars, ...(input === undefined ? {} : { input }) })
  }

  /** Checkpoints whose parents were pruned: git's own `shallow` file. */
  get shallow(): ReadonlySet<Oid> {
    if (!this.#shallow) {
      const text = readIfThere(this.#env, `${this.gitDir}/shallow`)?.toString('latin1') ?? ''
      this.#shallow = new Set(text.split('\n').filter(isOid))
    }
    return this.#shallow
  }

  /** Cuts the history there; what lies before is pruned next. */
  writeShallow(oids: ReadonlySet<Oid>): void {
    const path = `${this.gitDir}/shallow`
    if (oids.size > 0) writeFileWhole(this.#env, path, { content: `${[...oids].sort().join('\n')}\n` })
    else if (this.#env.files.existsSync(path)) this.#env.files.unlinkSync(path)
    this.#shallow = oids
  }

  /** False while some objects are only borrowed: then the user's gc could take them. */
  get durable(): boolean {
    return !this.#env.files.existsSync(`${this.gitDir}/objects/info/alternates`)
  }

  close(): void {
    this.#memory?.updater.close()
    this.#memory?.durableUpdater.close()
    if (this.#owner === null) this.objects.close()
  }
}

const refGone = (ref: string, was: Oid) =>
  new CkptError(
    'DAMAGED',
    `The store's ref ${printable(ref)} is gone: it was at ${was.slice(0, 10)}. Nothing was changed.`,
    { hints: ['ckpt doctor --fix   (puts it back)'] },
  )

/** No configuration but the store's own reaches git: not the system's, not the user's. */
function storeVariables(gitDir: string): Record<string, string> {
  return { GIT_DIR: gitDir, GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null' }
}
