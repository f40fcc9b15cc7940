/** The words of a command line that are for ckpt: what follows `--` is names, or another program's. */
export function ownWords(argv: readonly string[]): readonly string[] {
  const dashes = argv.indexOf('--')
  return dashes < 0 ? argv : argv.slice(0, dashes)
}
