import { type ImportedPrompt, importTranscript, type Outcome } from '../../agents/import-transcript.ts'
import { AGENT_NAMES, findAgent } from '../../agents/registry.ts'
import { CkptError } from '../../core/errors.ts'
import { printable } from '../../core/paths.ts'
import { statIfThere } from '../../env.ts'
import { readIfThere } from '../../git/whole-file.ts'
import { closeContext, openContext } from '../../ops/context.ts'
import { absolute } from '../arguments.ts'
import type { Command } from '../command.ts'
import { table } from '../present/text.ts'

const WORDS: Record<Outcome, string> = {
  known: 'recorded already',
  described: 'recorded already; its prompt was added',
  recorded: 'recorded now, without its files',
  'passed-over': 'passed over: later turns are recorded',
  'of-parent': 'recorded in the session that this one was forked from',
  'at-work': 'left out: its session may still be at work',
}
const AT_WORK =
  'Some prompts were left out, for a turn of their session may still be at work: import the transcript again when it has ended.'

/** Characters of a prompt that are shown. */
const SHOWN = 60

const command: Command = async ({ env, args, cwd, arrived }) => {
  const name = String(args.agent)
  const agent = await findAgent(name)
  const { transcripts } = agent ?? {}
  if (!agent || !transcripts) {
    const why = agent ? `The transcripts of ${agent.title} are not read.` : `There is no agent ${JSON.stringify(name)}.`
    const hints = [`ckpt agent status   (${AGENT_NAMES.join(', ')})`]
    throw new CkptError('USAGE', `${why} Nothing was recorded.`, { hints })
  }
  const file = absolute(cwd, String(args.file))
  const bytes = readIfThere(env, file)
  const written = statIfThere(env.files, file)?.mtimeMs ?? 0
  if (bytes === null) throw new CkptError('NOT_FOUND', `There is no file ${file}. Nothing was recorded.`)
  const reader = transcripts.reader()
  reader.add(`${bytes.toString('utf8')}\n`)
  const said = reader.prompts
  if (said.length === 0) {
    throw new CkptError('BAD_MARKER', `${file} holds no prompt of ${agent.title}. Nothing was recorded.`)
  }
  const context = await openContext(env, cwd, { create: true, forgiving: true })
  try {
    const prompts = await importTranscript(context, agent, { prompts: said, written, arrived })
    const isAtWork = prompts.some(({ outcome }) => outcome === 'at-work')
    const warnings = [...context.warnings, ...(isAtWork ? [AT_WORK] : [])]
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
