/** The words of a command line that are for ckpt: what follows `--` is names, or another program's. */
export function ownWords(argv: readonly string[]): readonly string[] {
  const dashes = argv.indexOf('--')
  return dashes < 0 ? argv : argv.slice(0, dashes)
}

const OF_EVERY_COMMAND = /^--(?:(?:no-)?(?:json|quiet|color|daemon)|cwd)(?:=|$)/

/** How many words of a line are options that stand before its command. */
export function wordsBefore(argv: readonly string[]): number {
  let at = 0
  while (OF_EVERY_COMMAND.test(argv[at] ?? '')) at += argv[at] === '--cwd' ? 2 : 1
  return at
}

/** The same line with its command at the head: options that every command takes may stand before its name. */
export function commandFirst(argv: readonly string[]): readonly string[] {
  const at = wordsBefore(argv)
  const command = argv[at]
  if (at === 0 || command === undefined || command.startsWith('-')) return argv
  const rest = argv.slice(at + 1)
  const end = ownWords(rest).length
  return [command, ...rest.slice(0, end), ...argv.slice(0, at), ...rest.slice(end)]
}

/** Whether a switch of the command line is on; the last word of it counts. */
export function isOn(own: readonly string[], name: string): boolean {
  const last = own.findLast((word) => word === `--no-${name}` || word.split('=')[0] === `--${name}`)
  return last === `--${name}` || last === `--${name}=true`
}

/** What an option was given, the last time. */
export function valueIn(own: readonly string[], name: string): string | undefined {
  const at = own.findLastIndex((word) => word === `--${name}` || word.startsWith(`--${name}=`))
  return own[at]?.startsWith(`--${name}=`) ? own[at].slice(name.length + 3) : at < 0 ? undefined : own[at + 1]
}
