/** How wide a text is on a terminal, and what of it fits. */
import truncatedWidth from 'fast-string-truncated-width'

/** The columns that a text takes; colours take none. */
export const columnsOf = (text: string): number => truncatedWidth(text).width

/** A text without colours in at most so many columns (at least one), with an ellipsis where something is left out. */
export function clipped(text: string, columns: number): string {
  const { index, truncated, ellipsed } = truncatedWidth(text, { limit: columns, ellipsis: '…', ellipsisWidth: 1 })
  return truncated ? `${text.slice(0, index)}${ellipsed ? '…' : ''}` : text
}
