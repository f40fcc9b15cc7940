/**
 * docs/terminal.svg: the built program at work in a scratch repository, what it printed drawn as text. The clock is fixed
 * and checkpoint ids are replaced by stand-ins, so that the picture changes only when the program's words do.
 */
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { Writable } from 'node:stream'
import type { Env } from '../src/env.ts'

type Main = typeof import('../src/cli/main.ts')

/** A stream that keeps what is written, and calls itself a terminal, so that the program colours its words. */
function collector() {
  let text = ''
  const stream = Object.assign(
    new Writable({
      write(chunk: Buffer, _encoding, done) {
        text += chunk.toString('utf8')
        done()
      },
    }),
    { isTTY: true, columns: 100 },
  )
  return { stream, text: () => text }
}

/** Runs the scenario; the result is what a person would have seen, with its colours. */
export async function capture(): Promise<string[]> {
  const program = path.resolve(import.meta.dirname, '../dist/cli/main.cjs')
  const { main, realEnv } = (await import(program)) as Main
  const base = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'ckpt-picture-')))
  const root = path.join(base, 'shop')
  let clock = Date.UTC(2026, 0, 5, 9, 0)
  const lines: string[] = []
  const vars = { PATH: process.env.PATH, HOME: base, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' }
  const run = async (...argv: string[]) => {
    const [out, err] = [collector(), collector()]
    clock += 60_000
    const more: Partial<Env> = { vars, home: base, cwd: root, umask: 0o022, now: () => clock }
    const code = await main(argv, { ...realEnv(), ...more, stdout: out.stream, stderr: err.stream })
    if (code !== 0) throw new Error(`ckpt ${argv.join(' ')} ended with ${code}: ${err.text()}`)
    return `${out.text()}${err.text()}`
  }
  const show = async (...argv: string[]) => {
    lines.push(`\x1b[2m$\x1b[22m \x1b[1mckpt ${argv.join(' ')}\x1b[22m`)
    lines.push(...(await run(...argv)).trimEnd().split('\n'), '')
  }
  const write = (name: string, content: string) => {
    fs.mkdirSync(path.dirname(path.join(root, name)), { recursive: true })
    fs.writeFileSync(path.join(root, name), content)
  }
  const turn = async (text: string, work: () => void) => {
    await run('mark', 'prompt', '--session', 'chat-1', '--agent', 'demo', '--text', text)
    work()
    await run('mark', 'stop', '--session', 'chat-1')
  }
  const [zone, umask] = [process.env.TZ, process.umask(0o022)]
  process.env.TZ = 'UTC'
  try {
    write('README.md', '# Shop\n\nA small shop.\n\nRun `npm start`.\n')
    write('src/app.js', "console.log('shop')\n")
    const git = (...args: string[]) =>
      execFileSync('git', ['-c', 'user.name=Demo', '-c', 'user.email=demo@example.com', ...args], {
        cwd: root,
        env: { ...vars, GIT_AUTHOR_DATE: '2026-01-05T08:00:00Z', GIT_COMMITTER_DATE: '2026-01-05T08:00:00Z' },
      })
    git('init', '-q', '-b', 'main')
    git('add', '-A')
    git('commit', '-q', '-m', 'first')

    await turn('Add a cart', () => write('src/cart.js', 'export const cart = []\n'))
    await turn('Use the cart in the app', () =>
      write('src/app.js', "import { cart } from './cart.js'\nconsole.log('shop', cart)\n"),
    )
    await turn('Split prices off, and document it', () => {
      write('src/price.js', 'export const price = (item) => item.price\n')
      write('src/cart.js', "import { price } from './price.js'\nexport const cart = []\n")
      write('README.md', '# Shop\n\nA small shop. Prices live in `src/price.js`.\n\nRun `npm start`.\n')
    })
    await show('list')
    await show('diff', '--stat')
    lines.push("\x1b[2m$ echo 'Questions? Ask us.' >> README.md     # an edit of your own\x1b[22m", '')
    fs.appendFileSync(path.join(root, 'README.md'), 'Questions? Ask us.\n')
    await show('undo')
    await show('list', '--hidden')
    await show('redo')
    return standIns(lines.slice(0, -1))
  } finally {
    process.umask(umask)
    if (zone === undefined) delete process.env.TZ
    else process.env.TZ = zone
    fs.rmSync(base, { recursive: true, force: true })
  }
}

/** Checkpoint ids change with everything that is in a checkpoint; what they look like does not. */
function standIns(lines: readonly string[]): string[] {
  const known = new Map<string, string>()
  return lines.map((line) =>
    line.replace(/\b[0-9a-f]{10}\b/g, (id) => {
      if (!known.has(id)) known.set(id, `c0ffee${String(known.size + 1).padStart(4, '0')}`)
      return known.get(id)!
    }),
  )
}

const FONT = { size: 14, width: 8.43, height: 20, margin: 18, bar: 30 }
const COLORS: Record<number, string> = { 31: '#f28b82', 32: '#8fd19e', 33: '#f2cc60', 36: '#7fd4e6' }
const PLAIN = '#d7dce2'
const DIM = '#8a939e'

const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

interface Style {
  color: string | null
  bold: boolean
  dim: boolean
}

/** The escape sequences that picocolors writes (ECMA-48 SGR). */
function applyCode(style: Style, code: number): Style {
  if (code === 1) return { ...style, bold: true }
  if (code === 2) return { ...style, dim: true }
  if (code === 22) return { ...style, bold: false, dim: false }
  if (code === 39) return { ...style, color: null }
  return { ...style, color: COLORS[code] ?? style.color }
}

function spans(line: string): string {
  let style: Style = { color: null, bold: false, dim: false }
  let out = ''
  for (const part of line.split(/(\x1b\[\d+m)/)) {
    const code = /^\x1b\[(\d+)m$/.exec(part)
    if (code) style = applyCode(style, Number(code[1]))
    else if (part !== '') {
      const fill = style.color ?? (style.dim ? DIM : null)
      const attributes = `${fill ? ` fill="${fill}"` : ''}${style.bold ? ' font-weight="bold"' : ''}`
      out += attributes === '' ? escaped(part) : `<tspan${attributes}>${escaped(part)}</tspan>`
    }
  }
  return out
}

export function draw(lines: readonly string[]): string {
  const { size, width, height, margin, bar } = FONT
  const columns = Math.max(...lines.map((line) => line.replace(/\x1b\[\d+m/g, '').length))
  const [w, h] = [Math.ceil(columns * width) + 2 * margin, lines.length * height + bar + margin]
  const rows = lines.flatMap((line, i) =>
    line === '' ? [] : [`  <text x="${margin}" y="${bar + (i + 1) * height - 5}">${spans(line)}</text>`],
  )
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${w}" height="${h}" viewBox="0 0 ${w} ${h}" role="img">`,
    '  <title>ckpt in a terminal: list, diff, undo, redo</title>',
    '  <style>text { white-space: pre }</style>',
    `  <rect width="${w}" height="${h}" rx="8" fill="#16191d"/>`,
    ...['#e0655a', '#d9a93f', '#5fae63'].map(
      (c, i) => `  <circle cx="${margin + 4 + i * 18}" cy="17" r="5" fill="${c}"/>`,
    ),
    `  <g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="${size}" fill="${PLAIN}" xml:space="preserve">`,
    ...rows,
    '  </g>',
    '</svg>',
    '',
  ].join('\n')
}
