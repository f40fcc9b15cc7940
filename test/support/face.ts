/** What a person sees of a command: its streams and exit code as one text, with what differs from run to run replaced. */
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import type { Scratch } from './scratch.ts'

/** Ids, times, sizes and places: the rest is the same in every run. */
function steady(scratch: Scratch, text: string): string {
  return text
    .replaceAll(scratch.root, '<root>')
    .replaceAll(scratch.base, '<base>')
    .replace(/\b[A-Za-z0-9_-]{120,}\b/g, '<token>')
    .replace(/\b[0-9a-f]{40}\b/g, '<id>')
    .replace(/\b(?=[0-9a-f]*[0-9])[0-9a-f]{10}\b/g, '<id>')
    .replace(/-[0-9a-f]{16}\b/g, '-<hash>')
    .replace(/\b\d\d\d\d-\d\d-\d\d \d\d:\d\d\b/g, '<time>')
    .replace(/(?<= )\d\d:\d\d\b/g, '<time>')
    .replace(/\b\d+(\.\d)? (B|KiB|MiB)\b/g, '<size>')
    .replace(/\bgit \d+\.\d+\b/g, 'git <version>')
}

/** One command as a transcript: `$` what was typed, then standard output, standard error after `!`, and a code that is not 0. */
export function face(scratch: Scratch, line: string, input = ''): string {
  const { code, stdout, stderr } = scratch.run(line.split(' '), { input })
  const errors = stderr
    .trimEnd()
    .split('\n')
    .filter((row) => row !== '')
    .map((row) => `! ${row}`)
  const rows = [`$ ckpt ${line}`, ...(stdout === '' ? [] : [stdout.trimEnd()]), ...errors]
  return steady(scratch, [...rows, ...(code === 0 ? [] : [`exit ${code}`])].join('\n'))
}

/** Several commands, one after the other in the same place. */
export function faces(scratch: Scratch, lines: readonly string[]): string {
  return `\n${lines.map((line) => face(scratch, line)).join('\n\n')}\n`
}

/** Several commands, each in the same state: the worktree is put back after each one. */
export function facesEach(scratch: Scratch, lines: readonly string[]): string {
  const kept = path.join(scratch.base, 'kept')
  fs.mkdirSync(kept)
  execFileSync('cp', ['-a', scratch.root, scratch.home, kept])
  const shown = lines.map((line) => {
    const said = face(scratch, line)
    execFileSync('rm', ['-rf', scratch.root, scratch.home])
    execFileSync('cp', [
      '-a',
      ...[scratch.root, scratch.home].map((own) => path.join(kept, path.basename(own))),
      scratch.base,
    ])
    return said
  })
  return `\n${shown.join('\n\n')}\n`
}
