import { type ImportedPrompt, importTranscript, type Outcome } from '../../agents/import-transcript.ts'
import { AGENT_NAMES, findAgent } from '../../agents/registry.ts'
import { GrowingFile } from '../../agents/transcript.ts'
import { CkptError } from '../../core/errors.ts'
import { quotedPath } from '../../core/hint-words.ts'
import { printable } from '../../core/paths.ts'
import { type Env, statIfThere } from '../../env.ts'
import { closeContext, openContext } from '../../ops/worktree/context.ts'
import { absolute, fileName } from '../arguments.ts'
import type { Command } from '../command.ts'
import { table } from '../present/text.ts'

const WORDS: Record<Outcome, string> = {
  known: 'recorded already',
  described: 'recorded already; its prompt was added',
  recorded: 'recorded now, without its files',
  'passed-over': 'passed over: later turns are recorded',
  'of-parent': 'recorded in the session that this one was forked from',
  'at-work': 'left out: its session may still be at work',
  pending: 'left out: turns of its session are undone',
  'switched-off': 'not recorded: checkpoints are switched off here',
  elsewhere: 'left out: it was given in another place',
}
const AT_WORK =
  'Some prompts were left out, for a turn of their session may still be at work: import the transcript again when it has ended.'
const PENDING =
  'Some prompts were left out, for turns of their session are undone: ckpt redo or ckpt accept, then import the transcript again.'

/** Characters of a prompt that are shown. */
const SHOWN = 60

const command: Command = async ({ env, args, cwd }) => {
  const name = String(args.agent)
  const agent = await findAgent(name)
  const { transcripts } = agent ?? {}
  if (!agent || !transcripts) {
    const why = agent ? `The transcripts of ${agent.title} are not read.` : `There is no agent ${JSON.stringify(name)}.`
    const hints = [`ckpt agent status   (${AGENT_NAMES.join(', ')})`]
    throw new CkptError('USAGE', `${why} Nothing was recorded.`, { hints })
  }
  const file = absolute(cwd, fileName(args))
  const written = writtenAt(env, file)
  const reader = transcripts.reader()
  const growing = new GrowingFile(env, file)
  for (let lines = growing.next(); lines !== null; lines = growing.next()) reader.add(lines)
  reader.add(`${growing.rest()}\n`)
  const said = reader.prompts
  if (said.length === 0) {
    throw new CkptError('BAD_MARKER', `${file} holds no prompt of ${agent.title}. Nothing was recorded.`)
  }
  const context = await openContext(env, cwd, { create: true, forgiving: true })
  try {
    const transcript = { agent: { ...agent, transcripts }, path: file, prompts: said, written }
    // Each prompt is two checkpoints, of which nobody is told before the last: they go to disk together.
    context.store.remember()
    const prompts = await importTranscript(context, transcript).finally(() =>
      context.store.syncInSteps(async () => undefined),
    )
    const has = (wanted: Outcome) => prompts.some(({ outcome }) => outcome === wanted)
    const warnings = [
      ...context.warnings,
      ...(has('at-work') ? [AT_WORK] : []),
      ...(has('pending') ? [PENDING] : []),
      ...toldPlaces(prompts, `import-transcript ${name} ${quotedPath(file)}`),
    ]
    return {
      json: { agent: name, prompts: prompts.map(promptJson), warnings },
      text: table(
        prompts.map((one) => [one.turn === null ? '-' : String(one.turn), WORDS[one.outcome], firstLine(one)]),
      ),
      warnings,
    }
  } finally {
    closeContext(context)
  }
}

/** Each directory once. */
function toldPlaces(prompts: readonly ImportedPrompt[], line: string): string[] {
  const placesOf = (wanted: (one: ImportedPrompt) => boolean) =>
    new Set(prompts.flatMap((one) => (wanted(one) && one.directory !== null ? [one.directory] : [])))
  const elsewhere = placesOf(({ outcome }) => outcome === 'elsewhere')
  const gone = placesOf(({ outcome, isGone }) => outcome === 'recorded' && isGone)
  return [
    ...[...elsewhere].map(
      (at) => `Some prompts were left out, for they were given in another place: ckpt --cwd ${quotedPath(at)} ${line}`,
    ),
    ...[...gone].map((at) => `Some prompts were given in ${at}, which is not there any more: they are recorded here.`),
  ]
}

const HINTS = ['ckpt import-transcript --help']

/** Milliseconds since 1970. @throws CkptError NOT_FOUND, USAGE: it is none that can be read */
function writtenAt({ files }: Env, file: string): number {
  try {
    const stats = statIfThere(files, file)
    if (stats === null)
      throw new CkptError('NOT_FOUND', `There is no file ${file}. Nothing was recorded.`, { hints: HINTS })
    if (!stats.isFile())
      throw new CkptError('USAGE', `${file} is no file that can be read. Nothing was recorded.`, { hints: HINTS })
    files.accessSync(file, 4) // R_OK: access(2)
    return stats.mtimeMs
  } catch (error) {
    if (error instanceof CkptError) throw error
    const why = error instanceof Error ? error.message : String(error)
    throw new CkptError('USAGE', `${file} cannot be read: ${why}. Nothing was recorded.`, {
      hints: HINTS,
      cause: error,
    })
  }
}

const firstLine = ({ text }: ImportedPrompt) => printable(text.split('\n')[0]!.slice(0, SHOWN))

const promptJson = ({ session, turn, outcome, messageId, parent, text, time, end }: ImportedPrompt) => ({
  session,
  turn,
  outcome,
  messageId,
  parent,
  text,
  time,
  end,
})

export default command
