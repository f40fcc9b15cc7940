/** What an agent is to the rest: payloads that become markers, and a place where our entry is kept. */
import type { SessionId } from '../core/ids.ts'
import type { Marker } from '../core/marker.ts'
import type { Env } from '../env.ts'

/** What one payload asks for. */
export interface Heard {
  /** In order; the paths of steps as the agent wrote them. */
  markers: Marker[]
  /** Where the agent stands now; it may have moved into another repository. */
  cwd?: string
  /** Where it is at work besides `cwd`, all at once: each place is told the same. */
  elsewhere?: readonly string[]
  /** Where the agent was started: wins over a `cwd` in another repository. */
  project?: string
  /** A conversation begins or is taken up again. `parent`: it is a subagent's, and folds into that one's turn. */
  started?: { session: SessionId; source: string; parent?: SessionId }
  /** A conversation is over, as far as the agent says so. */
  ended?: SessionId
  /** The agent's own record, where the id that its rewind takes can be found. */
  transcript?: { path: string; turn: string }
}

/** A prompt as the agent's own record has it. */
export interface SaidPrompt {
  session: SessionId
  /** Of a prompt that a fork took along, where the record tells: the session that it was given in. */
  original: SessionId | null
  /** What its marker would be called, had a hook told of it. */
  marker: string
  /** By which of its ids a turn may be known. */
  ids: readonly string[]
  /** What the agent's rewind takes. */
  messageId: string
  /** The message id of the prompt it follows in the conversation; null: the first. */
  parent: string | null
  text: string
  /** Nobody's words: see the marker of a prompt. */
  notice: boolean
  time: string | null
  cwd: string | null
  /** Null: it goes on, as far as the record tells. */
  end: 'completed' | 'interrupted' | 'failed' | null
}

/** Takes a transcript in pieces, as it grows. */
export interface TranscriptReader {
  add: (text: string) => void
  /** Of what was added, as far as its last whole line. */
  readonly prompts: readonly SaidPrompt[]
}

export interface Transcripts {
  /** Where they are written, one directory for each place; those of a worktree begin with `prefix`. */
  directory: (places: Omit<Places, 'root'>) => string
  prefix: (root: string) => string
  reader: () => TranscriptReader
}

export interface HearOptions {
  /** The event as the command line names it, for agents whose payload may not. */
  event: string | undefined
  vars: Readonly<Record<string, string | undefined>>
}

export const SCOPES = ['user', 'project', 'local'] as const
/** user: every project of this person. project: goes into the repository. local: this worktree only, not committed. */
export type Scope = (typeof SCOPES)[number]

export interface Places {
  home: string
  vars: Readonly<Record<string, string | undefined>>
  /** The worktree's root. */
  root: string
}

/** Settings in JSON with a `hooks` object: for each event a list that we append one element to. */
export interface HookSettings {
  kind: 'hooks'
  /** Null: the agent has no such scope. */
  file: (scope: Scope, places: Places) => string | null
  /** Our elements, in the order in which they are written. */
  entries: (command: (event: string) => string) => readonly { event: string; entry: unknown }[]
  /** The commands in an element of an event's list. */
  commandsOf: (entry: unknown) => readonly string[]
  /** Keys that a file made by us needs beside `hooks`. */
  skeleton?: Readonly<Record<string, unknown>>
}

/** A file of ours in the agent's plugin directory. */
interface PluginSettings {
  kind: 'plugin'
  file: (scope: Scope, places: Places) => string | null
  /** Path in the package. */
  source: string
}

/** A setting that keeps every hook from running, and the file that it stands in. */
export interface SwitchedOff {
  key: string
  path: string
}

export interface Trust {
  trusted: number
  waiting: number
}

export interface Agent {
  name: string
  /** As a person writes it. */
  title: string
  /** @throws CkptError BAD_MARKER for a payload that cannot be understood */
  hear: (payload: unknown, options: HearOptions) => Heard
  /** Its conversations may fork without a word: a first prompt under an id that never began is of the one resumed last. */
  forks?: boolean
  /** Its subagents have sessions of their own. */
  children?: boolean
  /** What the agent waits for on standard output. */
  answer?: (event: string | undefined) => string | null
  /** Standard output of the hook of a prompt that puts a line into the model's context; absent: there is no such place. */
  inform?: (line: string) => string
  /** How a person takes the conversation back too. */
  goBack?: (ids: { session: string; messageId: string | null }) => string
  /** Milliseconds after which the agent gives a hook up, as we install it. */
  timeout: (event: string | undefined) => number
  /** The id that the agent's own rewind takes, looked for in the lines of its transcript that speak of the turn. */
  messageIdIn?: (lines: readonly string[], turn: string) => string | null
  /** The session that one was forked from, of the lines of its transcript in which one of these words stands. */
  forkedFromIn?: { words: readonly string[]; session: (lines: readonly string[]) => string | null }
  transcripts?: Transcripts
  settings: HookSettings | PluginSettings
  /** Directories that say the agent is on this machine. */
  signs: (places: Omit<Places, 'root'>) => readonly string[]
  /** What a person has to do after an install. */
  afterwards?: string
  switchedOff?: (env: Env, places: Places) => SwitchedOff | null
  /** Of our hooks, those that the agent runs, and those that wait for its user's trust. `give`: trusts them. */
  trust?: (env: Env, options: { root: string; give: boolean }) => Promise<Trust>
  /** What is seen of its work, in one line. */
  covers: string
}
