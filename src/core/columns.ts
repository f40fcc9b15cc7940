/** How wide a text is on a terminal. Pure. */

/** East Asian wide and fullwidth characters (Unicode Annex 11), and what is drawn as a picture. */
const WIDE =
  /^(?:[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{16fe0}-\u{18dff}\u{1aff0}-\u{1b2ff}\u{1f200}-\u{1f2ff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation})|\ufe0f/u
/** Marks that come alone, joiners, and what a terminal does not draw at all. */
const UNSEEN = /^[\p{Mark}\p{Format}\p{Control}]+$/u
/** One column for each, as nearly all is. */
const PLAIN = /^[\x20-\x7e]*$/
const COLOURS = /\x1b\[[0-9;]*m/g

/** What a person takes for one character; made once it is needed, for it takes some milliseconds. */
let segmenter: Intl.Segmenter | undefined

function characters(text: string): string[] {
  segmenter ??= new Intl.Segmenter('en', { granularity: 'grapheme' })
  return Array.from(segmenter.segment(text), ({ segment }) => segment)
}

const columnsOfOne = (character: string): number => (UNSEEN.test(character) ? 0 : WIDE.test(character) ? 2 : 1)

/** The columns that a text takes; colours take none. */
export function columnsOf(text: string): number {
  const bare = text.replace(COLOURS, '')
  return PLAIN.test(bare) ? bare.length : characters(bare).reduce((sum, one) => sum + columnsOfOne(one), 0)
}

/** A text without colours in at most so many columns (at least one), with an ellipsis where something is left out. */
export function clipped(text: string, columns: number): string {
  if (columnsOf(text) <= columns) return text
  let [kept, left] = ['', columns - 1]
  for (const one of characters(text)) {
    left -= columnsOfOne(one)
    if (left < 0) break
    kept += one
  }
  return `${kept}…`
}
