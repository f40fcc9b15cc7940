/** A hint that says "the same once more, with another option", as a line that can be run. Pure. */

/** Options that do not go together with those that hints propose, or say nothing about what is done. */
const DROPPED = new Set(['--merge', '--force', '--skip-conflicts', '--dry-run', '--json', '--quiet', '--no-daemon'])

const quoted = (word: string) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)

/** `ckpt undo … --merge   (why)` with the words of the command line in place of the dots, if it is that command's. */
export function again(hint: string, argv: readonly string[]): string {
  const match = /^ckpt (\S+) … (--\S+)(.*)$/.exec(hint)
  if (!match || match[1] !== argv[0]) return hint
  const dashes = argv.indexOf('--')
  const [own, rest] = dashes < 0 ? [argv, []] : [argv.slice(0, dashes), argv.slice(dashes)]
  const words = [...own.filter((word) => !DROPPED.has(word)), match[2]!, ...rest]
  return `ckpt ${words.map(quoted).join(' ')}${match[3]}`
}
