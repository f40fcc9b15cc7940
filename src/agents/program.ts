/** How an agent is to start us, and what of ours lies in the package. */
import { quoted } from '../core/hint-words.ts'
import type { Env } from '../env.ts'
import { packageFile } from '../package-file.ts'
import { programInPath } from '../programs.ts'
import type { Scope } from './agent.ts'

/**
 * The client that hooks run, by its path: an agent may have another PATH than the terminal that it is installed from (started
 * from a desktop, or with another Node). By its name where others share the file, and have it elsewhere.
 */
export function hookProgram(env: Env, scope: Scope): string {
  if (scope === 'project') return 'ckpt-hook'
  const found = foundOutside(env, 'ckpt-hook')
  return found !== null && isClient(env, found) ? found : ownClient(env)
}

/** Not a tool's wrapper: one whose target is gone ends with 2, which an agent takes for a refusal. */
function isClient(env: Env, file: string): boolean {
  const real = env.files.realpathSync(file)
  return lastName(real) === 'ckpt-hook' && env.files.existsSync(`${real.slice(0, real.lastIndexOf('/'))}/ckpt.js`)
}

/** That of the package that this is part of, by a name that stays when pnpm puts another version in its place. */
function ownClient(env: Env): string {
  const { files } = env
  const file = packageFile(env, 'bin/ckpt-hook')
  const [, top] = /^(.*?)\/\.pnpm\/[^/]+\/node_modules\/ckpt\/bin\/ckpt-hook$/.exec(file) ?? []
  if (top === undefined) return file
  const linked = `${top.replace(/\/node_modules$/, '')}/node_modules/ckpt/bin/ckpt-hook`
  return files.existsSync(linked) && files.realpathSync(linked) === files.realpathSync(file) ? linked : file
}

/** A program in PATH; not where only what npm, pnpm, yarn or bun runs has it. */
export function foundOutside(env: Env, name: string): string | null {
  const { PATH = '', BERRY_BIN_FOLDER } = env.vars
  const left = PATH.split(':').filter((at) => !/\/node_modules\/\.bin\/*$/.test(at) && at !== BERRY_BIN_FOLDER)
  return programInPath({ files: env.files, vars: { PATH: left.join(':') } }, name)
}

/** How an agent gets the client where it has none in its PATH. */
export const INSTALL_CLIENT = 'npm install -g ckpt   (ckpt-hook is not in PATH)'

/** Directories of npx, `pnpm dlx` and bunx, which are emptied at some time. */
const CACHE = /\/(?:_npx|pnpm\/dlx|dlx-\d+|bunx-[^/]+)\//

/** Why an agent may not be able to start the client that an install in this scope names; null: nothing is known against it. */
export function maybeNoClient(env: Env, scope: Scope): string | null {
  if (scope === 'project')
    return foundOutside(env, 'ckpt-hook') ? null : `The agent cannot start these hooks yet: ${INSTALL_CLIENT}`
  const program = hookProgram(env, scope)
  return CACHE.test(program)
    ? `These hooks are started from a cache, ${program}, and fail once that is emptied: npm install -g ckpt, and install them again.`
    : null
}

/** The same as one word of a shell. */
export const hookWord = (env: Env, scope: Scope): string => quoted(hookProgram(env, scope))

/** What of a command line is in quotes, and what is a comment. */
const QUOTED_OR_COMMENT = /'[^']*'|"(?:\\.|[^"\\])*"|\\.|(^|[\s;&|()])#[^\n]*/gs

/** With blanks in their place. */
const withoutComments = (command: string): string =>
  command.replace(QUOTED_OR_COMMENT, (all: string, before?: string) => (before ?? all).padEnd(all.length))

/** A word of a shell in which nothing is expanded, and no character that ends a command. */
const WORD = /(?:[^\s'"\\;&|<>()$`*?]|'[^']*'|"[^"\\$`]*"|\\.)+/g

const unquoted = (word: string): string => word.replace(/'([^']*)'|"([^"]*)"|\\(.)/g, '$1$2$3')

const lastName = (path: string): string => path.slice(path.lastIndexOf('/') + 1)

/** Whether it does nothing else: a person may have made it do more. */
export function isNothingButHookOf(agent: string): (command: string) => boolean {
  const pattern = new RegExp(`^(?:ckpt-hook|(?:(?:node|npx) )?ckpt(?:\\.js)? hook) ${agent}(?: \\w+)?$`)
  return (command) => {
    if (command.replace(WORD, '').trim() !== '' || command.includes('\n')) return false
    const words = [...command.matchAll(WORD)].map(([word]) => unquoted(word))
    return pattern.test(words.map(lastName).join(' '))
  }
}

interface Word {
  /** As it is written. */
  text: string
  index: number
  /** As the shell takes it. */
  word: string
  /** Whole: else it goes on from what is expanded. */
  isWhole: boolean
}

function wordsOf(command: string): Word[] {
  return [...withoutComments(command).matchAll(WORD)].map(({ 0: text, index, input }) => {
    const isWhole = /^$|[\s;&|(]/.test(input[index - 1] ?? '')
    return { text, index, word: unquoted(text), isWhole }
  })
}

function clientAt(command: string, agent: string): Word | undefined {
  const words = wordsOf(command)
  return words.find((_, i) => {
    const [name, next, last] = words.slice(i, i + 3).map(({ word }) => lastName(word))
    return (
      (name === 'ckpt-hook' && next === agent) || (/^ckpt(\.js)?$/.test(name!) && next === 'hook' && last === agent)
    )
  })
}

/** The program of ours that a command line starts, as it is named there; null: only a shell can tell. */
export function clientIn(command: string, agent: string): string | null {
  const words = wordsOf(command)
  const found = words.length === 1 ? words[0] : clientAt(command, agent)
  const isTold = found?.isWhole && (found.word.startsWith('/') || !found.word.includes('/'))
  return isTold ? found.word : null
}

/** Whether a client by its path is not that of this ckpt, and not the one that an install would name. */
export function isAnothersClient(env: Env, client: string): boolean {
  if (!client.startsWith('/') || client === hookProgram(env, 'user')) return false
  const directory = (file: string) => env.files.realpathSync(file).replace(/[^/]*$/, '')
  return directory(client) !== directory(ownClient(env))
}

/** Whether a command line runs our hook for an agent, however it is started, and whatever else it does. */
export function isHookOf(agent: string): (command: string) => boolean {
  const pattern = new RegExp(`(?:^|[\\s/'";&|(])(?:ckpt(?:\\.js)?['"]?\\s+hook|ckpt-hook['"]?)\\s+${agent}(?![\\w-])`)
  return (command) => pattern.test(withoutComments(command)) || clientAt(command, agent) !== undefined
}

/** A command line that does more, with the client (`word`, of a shell) where it lies now; as it is, where that cannot be told. */
export function withClientAt(command: string, { agent, word }: { agent: string; word: string }): string {
  const client = clientAt(command, agent)
  if (client?.isWhole && lastName(client.word) === 'ckpt-hook')
    return command.slice(0, client.index) + word + command.slice(client.index + client.text.length)
  // Inside of what another shell is told it must need no quotes.
  if (client || !/^[\w./-]+$/.test(word)) return command
  const told = new RegExp(`(^|[\\s;&|(]['"]?)[\\w./~+-]*?ckpt-hook(?=\\s+${agent}(?![\\w-]))`, 'g')
  return command.replace(told, (_, before: string) => before + word)
}
