import { closeContext, openContext } from '../../ops/worktree/context.ts'
import { chooseSession, readRefs } from '../../ops/worktree/sessions.ts'
import { ofPlace, sameAs } from '../again.ts'
import { text } from '../arguments.ts'
import type { Command } from '../command.ts'
import { beginning, short } from '../present/text.ts'

const command: Command = async ({ env, args, cwd, backends }) => {
  const context = await openContext(env, cwd, { create: true })
  try {
    const wanted = text(args, 'session')
    const latest = chooseSession(await readRefs(context), undefined)
    const { session, abandoned, cut, warnings } = await backends.accept(context, wanted)
    // Without a word the one is meant that has something undone: lines to run name it where that is not the newest.
    const named = wanted ?? (session === latest ? undefined : (session ?? undefined))
    const lost = []
    if (abandoned.length > 0)
      lost.push(
        `${abandoned.length === 1 ? `Turn ${abandoned[0]} is` : `Turns ${abandoned.join(', ')} are`} abandoned now; the files can still be brought back: ckpt restore ${abandoned.at(-1)}${sameAs({ session: named, cwd: args.cwd })}`,
      )
    if (cut)
      lost.push(
        `Turn ${cut.turn} ends before its ${beginning(cut)} now; as it was: ckpt restore ${short(cut.baseline)}${ofPlace(args.cwd)}`,
      )
    const shown = lost.length === 0 ? 'Nothing is undone here.' : `Kept. ${lost.join('. ')}`
    return { json: { session, abandoned, warnings }, text: shown, warnings }
  } finally {
    closeContext(context)
  }
}

export default command
