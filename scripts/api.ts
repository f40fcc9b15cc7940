/** The library's reference and the protocol's schema, made from docstrings, types and checks of the source. */
import fs from 'node:fs'
import path from 'node:path'
import { z } from 'zod'
import { methods } from '../src/calls/table.ts'
import { CAPABILITIES } from '../src/core/capabilities.ts'
import { PROTOCOL, REFUSED, UNAUTHORIZED, WRONG_PROTOCOL } from '../src/daemon/protocol.ts'
import * as own from '../src/daemon/protocol-schema.ts'

const root = path.resolve(import.meta.dirname, '..')
const read = (name: string) => fs.readFileSync(path.join(root, name), 'utf8')

interface Entry {
  indent: string
  words: string
  code: string
}

/** Every docstring of a file with the declaration that follows it. */
function entries(file: string): Entry[] {
  const found: Entry[] = []
  const text = read(file)
  for (const match of text.matchAll(/^( *)\/\*\*([\s\S]*?)\*\/\n/gm)) {
    const [whole, indent, comment] = match
    const words = comment!
      .replace(/\n\s*\* ?/g, ' ')
      .replace(/\s+/g, ' ')
      .trim()
    found.push({ indent: indent!, words, code: declaration(text.slice(match.index + whole.length)) })
  }
  return found
}

/** Up to where a body or the next line begins. */
function declaration(after: string): string {
  const lines: string[] = []
  for (const line of after.split('\n')) {
    lines.push(line.trim())
    if (/[{;]$|^\}|[^,(|=]$/.test(line)) break
  }
  return inFlat(lines.join(' ').replace(/ ?\{$/, '').replace(/\( /g, '(').replace(/, \)/g, ')'))
}

/** The names of types as the package exports them: without the modules of ours that they are from. */
const inFlat = (code: string) => code.replace(/\b(Requests|Shapes)\./g, '')

const sentence = (words: string) => words.replace(/ ?@throws (.*)$/, '\n\nThrows $1').replace(/([^.`)])$/, '$1.')

/** Classes and functions, with their public members. */
function functionsOf(file: string): string {
  const parts: string[] = []
  for (const { indent, words, code } of entries(file)) {
    if (words.startsWith('@internal') || /^(constructor|readonly #|#|const |type )/.test(code)) continue
    if (indent === '' && /^export (class|async function|function|interface)/.test(code))
      parts.push(
        `### ${code.replace(/^export (async )?/, '').replace(/ extends .*| implements .*/, '')}`,
        sentence(words),
      )
    else if (indent === '  ') parts.push(`\`\`\`ts\n${code.replace(/^async /, '')}\n\`\`\``, sentence(words))
  }
  return parts.join('\n\n')
}

/** One type of a file, with what is said of it. */
function typeOf(file: string, name: string): string {
  const pattern = new RegExp(`/\\*\\* ([^\\n]*) \\*/\\n(export type ${name} =[\\s\\S]*?)\\n\\n`)
  const [, words, code] = pattern.exec(read(file))!
  return `${words}\n\n\`\`\`ts\n${code}\n\`\`\``
}

/** A file of types as it is, less its imports: who writes a program needs every name in it. */
const declarationsOf = (file: string): string =>
  `\`\`\`ts\n${read(file)
    .replace(/^\/\*\*[\s\S]*?\*\/\n/, '')
    .replace(/^import .*\n/gm, '')
    .replace(/^export (?=const )/gm, '')
    .trim()}\n\`\`\``

export function libraryPage(): string {
  const examples = fs.readdirSync(path.join(root, 'docs/examples')).filter((name) => name.endsWith('.ts'))
  return `${[
    '# The library',
    'This page is made by `npm run docs` from the source; a test compares the two, and runs the examples.',
    "```ts\nimport { openWorktree } from 'ckpt'\n```",
    'Undo and redo of a session for programs: the same engine, results and refusals as the command line. Every error of a worktree is a `CkptError`: `code` is one of [these](exit-codes.md), `message` says what was left untouched, `hints` are what to do next, mostly commands (`…` in one stands for the arguments of the call that was refused), `paths` are relative to the root, `warnings` tell of what was done or passed over before. The types want TypeScript 5.7, or `skipLibCheck`.',
    ...examples.flatMap((name) => [`## Example: ${name}`, `\`\`\`ts\n${read(`docs/examples/${name}`).trim()}\n\`\`\``]),
    '## Opening a worktree',
    functionsOf('src/library/worktree.ts'),
    '## Functions',
    functionsOf('src/library/facade.ts'),
    '## What is asked for',
    'The options of the functions above, each with `CallOptions` besides. What is marked `export` here and below can be imported from `ckpt` as a type of that name.',
    declarationsOf('src/calls/requests.ts'),
    '## What is given back',
    "Results are what `--json` prints. Times are ISO 8601 in UTC. Paths are relative to the worktree's root and `/`-separated; where a path is not UTF-8, `pathBase64` beside it holds its bytes.",
    declarationsOf('src/results/shapes.ts'),
    '## The daemon',
    `The same functions, carried out by the worktree's daemon, and events. The protocol is JSON-RPC 2.0 on a unix socket, each message after a \`Content-Length\` header and an empty line, as editors' language servers have it, version ${PROTOCOL}; [its schema](protocol.schema.json) is \`ckpt/protocol.schema.json\`. The socket's path and the token that \`hello\` wants are in \`daemon/info.json\` of the worktree's directory in the store. Who closes his side of the connection is answered what he asked before. Batches are refused, and a request without an \`id\` is carried out by nobody.`,
    functionsOf('src/library/client.ts'),
    '### On the wire',
    'For clients without this library. The first request is `hello`, which answers `Welcome`; `cli` answers `CliAnswer`, `subscribe` answers `Subscribed`, `state` (with the token) `DaemonState`, and `unsubscribe` null. Each call of the library is a method: what it is called, what it takes (its `signal` less), and what it answers:',
    `\`\`\`ts\n${inFlat(/^export (interface Methods \{[\s\S]*?^\})/m.exec(read('src/calls/methods.ts'))![1]!)}\n\`\`\``,
    `A refusal is an error with the code ${REFUSED}, whose \`data\` is \`ErrorInfo\` with an \`exitCode\`, and beside it what \`--json\` gives beside an error. What is sent, and what is told in the notifications \`event\` and \`progress\`. Who reads too slowly is sent \`behind\` and no more events: \`subscribe\` again with its \`epoch\` and \`seq\` as \`after\`.`,
    declarationsOf('src/daemon/protocol.ts'),
    '## The rewind menu',
    'For front ends on a terminal. `ckpt watch` uses the same.',
    functionsOf('src/library/rewind-menu.ts'),
    '### type RewindOutcome',
    typeOf('src/library/rewind-menu.ts', 'RewindOutcome'),
    functionsOf('src/library/double-escape.ts'),
    '## Other backends',
    'Sessions of agents that have an undo of their own: [backends.md](backends.md).',
    '## Capabilities',
    [
      '| capability | lets a person |',
      '| --- | --- |',
      ...Object.entries(CAPABILITIES).map(([name, what]) => `| \`${name}\` | ${what} |`),
    ].join('\n'),
  ].join('\n\n')}\n`
}

const eventTypes = (): string[] =>
  [...read('src/daemon/protocol.ts').matchAll(/\| \{ type: '([\w.]+)'/g)].map((match) => match[1]!)

/** What each method takes, as JSON Schema. */
export function protocolSchema(): string {
  const json = (schema: z.ZodType) => {
    const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' })
    return rest
  }
  const daemons: Record<string, z.ZodType> = {
    hello: own.helloRequest,
    cli: own.cliRequest,
    state: own.tokenRequest,
    stop: own.tokenRequest,
    subscribe: own.subscribeRequest,
    unsubscribe: own.nothing,
    notice: own.noticeRequest,
  }
  const all = [
    ...Object.entries(daemons),
    ...Object.entries(methods).map(([name, { takes }]) => [name, takes as z.ZodType] as const),
  ]
  const document = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'ckpt daemon protocol',
    description: 'JSON-RPC 2.0 with Content-Length headers. The first request of a connection is hello.',
    version: PROTOCOL,
    errors: { unauthorized: UNAUTHORIZED, wrongProtocol: WRONG_PROTOCOL, refused: REFUSED },
    methods: Object.fromEntries(all.map(([name, takes]) => [name, { params: json(takes) }])),
    notifications: {
      event: {
        params: {
          type: 'object',
          required: ['epoch', 'seq', 'time', 'event'],
          properties: {
            epoch: { type: 'string' },
            seq: { type: 'integer', minimum: 1 },
            time: { type: 'string', format: 'date-time' },
            event: { type: 'object', required: ['type'], properties: { type: { enum: eventTypes() } } },
          },
        },
      },
      behind: {
        description:
          'The subscriber does not keep up, and hears nothing more: subscribe again with these params as `after`.',
        params: {
          type: 'object',
          required: ['epoch', 'seq'],
          properties: { epoch: { type: 'string' }, seq: { type: 'integer' } },
        },
      },
      progress: { params: { type: 'object', required: ['what'], properties: { what: { type: 'string' } } } },
    },
  }
  return `${JSON.stringify(document, null, 2)}\n`
}
