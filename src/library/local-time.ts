/** Times as a person reads them: where they are. */

/** `12:04` of today, else the date. */
export function when(time: string, now: number): string {
  const date = new Date(time)
  const two = (n: number) => String(n).padStart(2, '0')
  const today = new Date(now)
  const clock = `${two(date.getHours())}:${two(date.getMinutes())}`
  if (date.toDateString() === today.toDateString()) return clock
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${clock}`
}
