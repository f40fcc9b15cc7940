/** What a person sees of a command: its streams and exit code as one text, with what differs from run to run replaced. */
import { execFileSync, spawnSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { PROGRAM, type Ran, type RunOptions, type Scratch } from './scratch.ts'

/** Ids, times, sizes and places: the rest is the same in every run. */
function steady(scratch: Scratch, text: string): string {
  return text
    .replaceAll(scratch.root, '<root>')
    .replaceAll(scratch.base, '<base>')
    .replaceAll(path.dirname(path.dirname(PROGRAM)), '<program>')
    .replaceAll(process.execPath, '<node>')
    .replace(/\(process \d+\)/g, '(process <pid>)')
    .replace(/\b[A-Za-z0-9_-]{120,}\b/g, '<token>')
    .replace(/\b[0-9a-f]{40}\b/g, '<id>')
    .replace(/\b[0-9a-f]{10}\b/g, '<id>')
    .replace(/-[0-9a-f]{16}\b/g, '-<hash>')
    .replace(/\b\d\d\d\d-\d\d-\d\d \d\d:\d\d\b/g, '<time>')
    .replace(/(?<= )\d\d:\d\d\b/g, '<time>')
    .replace(/\b\d+(\.\d)? (B|KiB|MiB)\b/g, '<size>')
    .replace(/\b\d+ (loose )?objects\b/g, '<n> $1objects') // two of the same second may be one
    .replace(/\bgit \d+\.\d+\b/g, 'git <version>')
}

/** One command as a transcript: standard output, standard error after `!`, and a code that is not 0. */
function said(scratch: Scratch, line: string): string {
  const { code, stdout, stderr } = line === 'watch' ? watched(scratch) : scratch.run(line.split(' '), inputOf(line))
  const errors = stderr
    .trimEnd()
    .split('\n')
    .filter((row) => row !== '')
    .map((row) => `! ${row}`)
  const rows = [...(stdout === '' ? [] : [stdout.trimEnd()]), ...errors]
  return steady(scratch, [...rows, ...(code === 0 ? [] : [`exit ${code}`])].join('\n'))
}

/** What an agent sends on standard input. */
function inputOf(line: string): RunOptions {
  const payload = { session_id: 'chat-1', hook_event_name: 'UserPromptSubmit', prompt: 'more' }
  return line.startsWith('hook ') ? { input: JSON.stringify(payload) } : {}
}

/** `ckpt watch` until it says something, then Ctrl-C. */
function watched(scratch: Scratch): Ran {
  const [out, err] = ['out', 'err'].map((name) => path.join(scratch.base, name))
  const script = `"$@" >${out} 2>${err} & pid=$!
    while [ ! -s ${out} ] && kill -0 $pid 2>/dev/null; do sleep 0.05; done
    kill -INT $pid 2>/dev/null; wait $pid`
  const { status } = spawnSync('sh', ['-c', script, 'sh', process.execPath, PROGRAM, 'watch'], {
    cwd: scratch.root,
    env: scratch.vars,
  })
  return { code: status ?? 128, stdout: fs.readFileSync(out!, 'utf8'), stderr: fs.readFileSync(err!, 'utf8') }
}

/** `$` what was typed, then what was said; what says the same as the line before stands above it. */
function transcript(lines: readonly string[], run: (line: string) => string): string {
  const blocks: { typed: string[]; said: string }[] = []
  for (const line of lines) {
    const answer = run(line)
    const last = blocks.at(-1)
    if (last?.said === answer) last.typed.push(line)
    else blocks.push({ typed: [line], said: answer })
  }
  const shown = blocks.map(({ typed, said: answer }) =>
    [...typed.map((line) => `$ ckpt ${line}`.trimEnd()), ...(answer === '' ? [] : [answer])].join('\n'),
  )
  return `\n${shown.join('\n\n')}\n`
}

/** Several commands, one after the other in the same place. */
export function faces(scratch: Scratch, lines: readonly string[]): string {
  return transcript(lines, (line) => said(scratch, line))
}

/** Several commands, each in the same state: worktree and home are put back after each one. `../remote.git` is there, and stays. */
export function facesEach(scratch: Scratch, lines: readonly string[]): string {
  const kept = path.join(scratch.base, 'kept')
  fs.mkdirSync(kept)
  execFileSync('git', ['init', '-q', '--bare', path.join(scratch.base, 'remote.git')])
  execFileSync('cp', ['-a', scratch.root, scratch.home, kept])
  return transcript(lines, (line) => {
    const answer = said(scratch, line)
    // A git that outlives a refused command may still be tidying up.
    for (const own of [scratch.root, scratch.home]) fs.rmSync(own, { recursive: true, maxRetries: 10 })
    execFileSync('cp', [
      '-a',
      ...[scratch.root, scratch.home].map((own) => path.join(kept, path.basename(own))),
      scratch.base,
    ])
    return answer
  })
}
