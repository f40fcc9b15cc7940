/** The rows of the table of commands that are about agents. */
import { boolean, type CommandEntry, dryRun, id, oneWord, string } from './command-entry.ts'

export const agentCommands: CommandEntry[] = [
  {
    usage: 'agent <action> [name]',
    describe: 'have an agent tell ckpt of its turns: install, uninstall or status',
    options: {
      action: oneWord('install', 'uninstall', 'status'),
      name: oneWord('claude', 'codex', 'opencode', 'gemini', 'cursor'),
      scope: { ...string('user (the default), project, or local'), words: ['user', 'project', 'local'] },
      all: boolean('every agent that is on this machine'),
      'dry-run': dryRun,
      yes: { ...boolean('do not ask'), alias: 'y' },
      trust: boolean('have the agent trust the hooks, where it wants that (codex)'),
    },
    examples: [['ckpt agent install claude', 'every turn of Claude Code is a checkpoint']],
    load: async () => (await import('./commands/agent.ts')).default,
  },
  {
    usage: 'hook <name> [event]',
    describe: 'what an agent calls: its payload on standard input; always exits 0',
    options: {
      name: oneWord('claude', 'codex', 'opencode', 'gemini', 'cursor'),
      event: id('the event, where the payload lacks it'),
      handed: { ...string('a payload that was handed over to the daemon'), hidden: true },
      waited: { ...string('milliseconds that were waited for the daemon'), hidden: true },
      shell: { ...boolean('ckpt-hook asks'), hidden: true },
    },
    load: async () => (await import('./commands/hook.ts')).default,
  },
  {
    usage: 'import-transcript <agent> <file>',
    describe: "turns whose hooks did not run, from the agent's own record of a conversation",
    options: { agent: oneWord('claude'), file: id('the transcript; it is only read') },
    examples: [['ckpt import-transcript claude ~/.claude/projects/-home-me-app/ID.jsonl', 'prompts and message ids']],
    load: async () => (await import('./commands/import-transcript.ts')).default,
  },
]
