/**
 * A power cut, as a file system leaves it that keeps the order of names and not that of contents: every name is where the
 * calls put it, and the bytes of a file that was written and not synced since are gone. What a git wrote counts as synced
 * where that git was told to sync it.
 */
import type { ChildProcess } from 'node:child_process'
import fs, { type BigIntStats } from 'node:fs'
import path from 'node:path'
import type { Env, Files } from '../../src/env.ts'

type Inode = string

const inodeOf = ({ dev, ino }: BigIntStats): Inode => `${dev}:${ino}`

/** What git syncs by the name of its component (core.fsync in git-config(1)). */
const COMPONENTS: [pattern: RegExp, component: string][] = [
  [/\/store\.git\/refs\//, 'reference'],
  [/\/objects\/pack\/.*\.pack$/, 'pack'],
  [/\/objects\/pack\//, 'pack-metadata'],
]

export class PowerCut {
  readonly #root: string
  /** Bytes that are left of each file that is not synced. */
  readonly #left = new Map<Inode, number>()
  /** Of each process that is at work, what was written beside it meanwhile: that is told by the calls. */
  readonly #beside = new Set<Set<Inode>>()

  /** `root`: a worktree. Its files are looked at, and the store's; what git syncs of the user's repository is the user's word. */
  constructor(root: string) {
    this.#root = root
  }

  /** The calls of the file system, watched. */
  watched(files: Files): Files {
    const wrote = (inode: Inode, left: number) => {
      this.#left.set(inode, Math.min(left, this.#left.get(inode) ?? left))
      for (const written of this.#beside) written.add(inode)
    }
    const statOf = (file: number | fs.PathLike): BigIntStats =>
      typeof file === 'number' ? fs.fstatSync(file, { bigint: true }) : fs.statSync(file, { bigint: true })
    const after: { [Name in keyof Files]?: (args: Parameters<Files[Name]>, before: BigIntStats | null) => void } = {
      writeSync: ([fd], before) => wrote(inodeOf(statOf(fd)), Number(before?.size ?? 0)),
      writeFileSync: ([file], before) => wrote(inodeOf(statOf(file as number)), Number(before?.size ?? 0)),
      copyFileSync: ([, to]) => wrote(inodeOf(statOf(to)), 0),
      fsyncSync: ([fd]) => void this.#left.delete(inodeOf(statOf(fd))),
    }
    return new Proxy(files, {
      get: (target, name: keyof Files) => {
        const seen = after[name] as ((args: unknown[], before: BigIntStats | null) => void) | undefined
        if (!seen) return target[name]
        return (...args: unknown[]) => {
          const before = typeof args[0] === 'number' ? statOf(args[0]) : null
          const result = Reflect.apply(target[name], target, args)
          seen(args, before)
          return result
        }
      },
    })
  }

  /** Waiting for a file to be on disk, watched. */
  sync(sync: Env['sync']): Env['sync'] {
    return async (fd) => {
      const inode = inodeOf(fs.fstatSync(fd, { bigint: true }))
      await sync(fd)
      this.#left.delete(inode)
    }
  }

  /** Starting a process, watched: what lies there otherwise when it has ended, it wrote. */
  spawn(spawn: Env['spawn']): Env['spawn'] {
    return (command, args, options): ChildProcess => {
      const child = spawn(command, args, options)
      if (args.includes('cat-file') || args.includes('diff-index')) return child // they write nothing, whatever else does meanwhile
      const before = this.#list()
      const ours = new Set<Inode>()
      this.#beside.add(ours)
      child.once('exit', () => {
        this.#beside.delete(ours)
        const told = args.flatMap((arg) => /^core\.fsync=(.*)$/.exec(arg)?.[1]?.split(',') ?? [])
        for (const [file, { inode, print }] of this.#list()) {
          if (before.get(file)?.print === print || ours.has(inode)) continue
          const component = COMPONENTS.find(([pattern]) => pattern.test(file))?.[1]
          if (component && told.includes(component)) this.#left.delete(inode)
          else this.#left.set(inode, 0)
        }
      })
      return child
    }
  }

  #list(): Map<string, { inode: Inode; print: string }> {
    const found = new Map<string, { inode: Inode; print: string }>()
    for (const entry of fs.readdirSync(this.#root, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue
      const file = path.join(entry.parentPath, entry.name)
      const name = path.relative(this.#root, file)
      if (/^\.git\/(?!ckpt\/|hooks\/)/.test(name)) continue
      const stats = fs.lstatSync(file, { bigint: true, throwIfNoEntry: false })
      if (!stats) continue // it went meanwhile
      found.set(file, { inode: inodeOf(stats), print: `${inodeOf(stats)} ${stats.size} ${stats.mtimeNs}` })
    }
    return found
  }

  /** The power fails. Returns the files that lost something. */
  fail(): string[] {
    const lost: string[] = []
    for (const [file, { inode }] of this.#list()) {
      const left = this.#left.get(inode)
      const stats = fs.lstatSync(file)
      if (left === undefined || left >= stats.size) continue
      fs.chmodSync(file, 0o600)
      fs.truncateSync(file, left)
      fs.chmodSync(file, stats.mode & 0o7777)
      fs.utimesSync(file, 0, 0) // it was before the system started again
      lost.push(file)
    }
    return lost
  }
}
