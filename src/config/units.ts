/** Sizes and times as people write them. */
const sizes: Record<string, number> = {
  '': 1,
  b: 1,
  // A letter alone is what git takes it for.
  k: 2 ** 10,
  kib: 2 ** 10,
  kb: 1e3,
  m: 2 ** 20,
  mib: 2 ** 20,
  mb: 1e6,
  g: 2 ** 30,
  gib: 2 ** 30,
  gb: 1e9,
  t: 2 ** 40,
  tib: 2 ** 40,
  tb: 1e12,
}
const times: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }

/** How they are written: also what the published JSON Schema says. */
export const SIZE = /^(\d+(?:\.\d+)?)\s*([KkMmGgTt](?:[Ii]?[Bb])?|[Bb])?$/
export const DURATION = /^(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)$/

/** `10MiB`, `500kB`, `2048` to bytes; null for anything else. */
export function parseSize(text: string): number | null {
  const match = SIZE.exec(text)
  const unit = match ? sizes[(match[2] ?? '').toLowerCase()] : undefined
  return match && unit !== undefined ? Math.round(Number(match[1]) * unit) : null
}

/** `20s`, `7d`, `500ms` to milliseconds; null for anything else. */
export function parseDuration(text: string): number | null {
  const match = DURATION.exec(text)
  const unit = match ? times[match[2]!] : undefined
  return match && unit !== undefined ? Math.round(Number(match[1]) * unit) : null
}

export function bytesText(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB']
  let value = bytes
  let unit = 0
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024
    unit++
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`
}
