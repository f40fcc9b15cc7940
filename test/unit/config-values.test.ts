// Sizes and times as people write them; what a project's uncommitted file may say.
import { describe, expect, test } from 'vitest'
import { type Config, DEFAULTS, mergeConfig, type PartialConfig, widenConfig } from '../../src/config/defaults.ts'
import { checkConfig } from '../../src/config/schema.ts'
import { parseDuration, parseSize } from '../../src/config/units.ts'

test.each([
  ['0', 0],
  ['2048', 2048],
  ['1b', 1],
  ['10MiB', 10 * 2 ** 20],
  ['10 mib', 10 * 2 ** 20],
  ['500kB', 500_000],
  ['1.5GiB', 1.5 * 2 ** 30],
  ['2GB', 2e9],
  ['64k', 64 * 2 ** 10],
  ['10M', 10 * 2 ** 20],
  ['5g', 5 * 2 ** 30],
  ['1.5TiB', 1.5 * 2 ** 40],
  ['1TB', 1e12],
  ['', null],
  ['MiB', null],
  ['-1', null],
  ['1e3', null],
  ['10i', null],
  ['10 parsecs', null],
  ['1KiB ', null],
])('size %j', (text, bytes) => {
  expect(parseSize(text)).toBe(bytes)
})

test.each([
  ['500ms', 500],
  ['20s', 20_000],
  ['30m', 1_800_000],
  ['1.5h', 5_400_000],
  ['7d', 604_800_000],
  ['20', null],
  ['d', null],
  ['-7d', null],
  ['7D', null],
  ['2w', 1_209_600_000],
  ['1W', null],
])('duration %j', (text, milliseconds) => {
  expect(parseDuration(text)).toBe(milliseconds)
})

describe('widenConfig', () => {
  const widen = (onDisk: PartialConfig, trusted: Config = DEFAULTS) =>
    widenConfig(trusted, mergeConfig(trusted, onDisk))

  test('turns that are recorded without a marker stay so', () => {
    const trusted = mergeConfig(DEFAULTS, { watch: { autoTurn: true } })
    expect(widen({ watch: { autoTurn: false, idleStop: 1 } }, trusted)).toEqual({
      config: mergeConfig(trusted, { watch: { idleStop: 1 } }),
      ignored: ['watch.autoTurn'],
    })
  })

  test('what is the same is neither taken nor reported', () => {
    expect(widen({})).toEqual({ config: DEFAULTS, ignored: [] })
  })

  const narrower: [string, PartialConfig][] = [
    ['enableFileCheckpointing', { enableFileCheckpointing: false }],
    ['checkpointKeepCount', { checkpointKeepCount: 5 }],
    ['snapshot.exclude', { snapshot: { exclude: ['src'] } }],
    ['snapshot.maxFileSize', { snapshot: { maxFileSize: 1 } }],
    ['snapshot.maxBytes', { snapshot: { maxBytes: 1 } }],
    ['snapshot.deadline', { snapshot: { deadline: 1 } }],
    ['store.maxBytes', { store: { maxBytes: 1 } }],
    ['store.location', { store: { location: '/elsewhere' } }],
    ['watch.transcripts', { watch: { transcripts: false } }],
    ['prune.olderThan', { prune: { olderThan: 1 } }],
    ['prune.grace', { prune: { grace: 0 } }],
  ]
  test.each(narrower)('%s: what narrows is passed over, and named', (key, part) => {
    expect(widen(part)).toEqual({ config: DEFAULTS, ignored: [key] })
  })

  const wider: [string, PartialConfig, PartialConfig][] = [
    ['enableFileCheckpointing', { enableFileCheckpointing: false }, { enableFileCheckpointing: true }],
    ['checkpointKeepCount', { checkpointKeepCount: 5 }, { checkpointKeepCount: 6 }],
    ['checkpointKeepCount, no limit', { checkpointKeepCount: 5 }, { checkpointKeepCount: 0 }],
    ['snapshot.include', {}, { snapshot: { include: ['.env'] } }],
    ['snapshot.exclude', { snapshot: { exclude: ['src'] } }, { snapshot: { exclude: [] } }],
    ['snapshot.maxFileSize', {}, { snapshot: { maxFileSize: 2 ** 40 } }],
    ['store.maxBytes', {}, { store: { maxBytes: 2 ** 50 } }],
  ]
  test.each(wider)('%s: what widens counts at once', (_key, before, part) => {
    const trusted = mergeConfig(DEFAULTS, before)
    expect(widen(part, trusted)).toEqual({ config: mergeConfig(trusted, part), ignored: [] })
  })

  const lists: [string, 'include' | 'exclude', string[], string[], string[]][] = [
    ['an exception to exclude that goes', 'exclude', ['*.log', '!keep.log'], ['*.log'], ['*.log', '!keep.log']],
    ['one that is overruled', 'exclude', ['*.log', '!keep.log'], ['!keep.log', '*.log'], ['*.log', '!keep.log']],
    ['a wider pattern in the place of one', 'exclude', ['*.log'], ['*'], ['*.log']],
    ['an exception to include that comes', 'include', ['.env'], ['.env', '!.env'], ['.env']],
    ['one that comes with a pattern', 'include', ['.env'], ['.env', 'data', '!.env'], ['.env', 'data']],
    ['one that overrules by its place', 'include', ['!.env', '.env'], ['.env', '!.env'], ['!.env', '.env']],
  ]
  test.each(lists)('%s narrows', (_name, key, before, after, counts) => {
    const { config, ignored } = widen(
      { snapshot: { [key]: after } },
      mergeConfig(DEFAULTS, { snapshot: { [key]: before } }),
    )
    expect([config.snapshot[key], ignored]).toEqual([counts, [`snapshot.${key}`]])
  })

  const open: [string, 'include' | 'exclude', string[], string[]][] = [
    ['an exception to exclude that comes', 'exclude', ['*.log', 'tmp'], ['*.log', '!keep.log']],
    ['an exception to include that goes', 'include', ['.env*', '!.env.old'], ['.env*', 'data']],
  ]
  test.each(open)('%s counts at once', (_name, key, before, after) => {
    const { config, ignored } = widen(
      { snapshot: { [key]: after } },
      mergeConfig(DEFAULTS, { snapshot: { [key]: before } }),
    )
    expect([config.snapshot[key], ignored]).toEqual([after, []])
  })

  test('a pattern taken out of include stays in, and a new exclude beside an old one does not come in', () => {
    const trusted = mergeConfig(DEFAULTS, { snapshot: { include: ['.env'], exclude: ['big'] } })
    const { config, ignored } = widen({ snapshot: { include: ['data'], exclude: ['big', 'src'] } }, trusted)
    expect([config.snapshot.include, config.snapshot.exclude]).toEqual([['.env', 'data'], ['big']])
    expect(ignored).toEqual(['snapshot.include', 'snapshot.exclude'])
  })
})

test.each([
  [{ snapshot: { maxFileSize: -1 } }, '"snapshot.maxFileSize" must be a size in bytes, or like "10MiB"'],
  [{ snapshot: { deadline: '20' } }, '"snapshot.deadline" must be milliseconds, or a time like "20s"'],
  [{ prune: { grace: 1.5 } }, '"prune.grace" must be milliseconds, or a time like "20s"'],
  [{ prune: { olderThan: 'x' } }, '"prune.olderThan" must be "never" or a time like "30d"'],
  [{ snapshot: { exclude: [''] } }, '"snapshot.exclude.0" must be a gitignore pattern'],
  [{ checkpointKeepCount: 1.5 }, '"checkpointKeepCount" must be a whole number, 0 for no limit'],
  [{ commit: { messageCommand: '' } }, '"commit.messageCommand" must be a shell command, or false'],
  [{ prune: 'never' }, '"prune" must be keys and values; allowed are olderThan, grace'],
  [[], 'it must be keys and values; allowed are enableFileCheckpointing, '],
])('of %j it is said what is allowed', (value, said) => {
  expect(() => checkConfig(value, 'FILE')).toThrow(`FILE: ${said}`)
})

test.each(['30d', '60d', 2 ** 40])(
  'a deadline of %s is as long as a timer can wait, and not over at once',
  (deadline) => {
    expect(checkConfig({ snapshot: { deadline } }, 'here').snapshot?.deadline).toBe(2 ** 31 - 1)
  },
)
