/** A file system of a few megabytes, which can be full. */
import { execFileSync, spawnSync } from 'node:child_process'
import fs from 'node:fs'
import { onTestFinished, test } from 'vitest'

/** Skipped without the right to mount a file system, which is not there in most containers. */
export const testWithMounts = test.skipIf(spawnSync('unshare', ['-m', 'true']).status !== 0)

/** `size`: as tmpfs(5) takes it. */
export function mountSmall(directory: string, size: string): void {
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'none', directory])
  onTestFinished(() => {
    execFileSync('umount', ['-l', directory])
  })
}

/** Bytes. */
export function roomIn(directory: string): number {
  const { bavail, bsize } = fs.statfsSync(directory)
  return bavail * bsize
}
