import type { ImageAbilities } from '../../model-facts.ts'
import { parsePixelSize } from './pixel-size.ts'

type TokenTable = NonNullable<ImageAbilities['outputTokens']>

interface Entry {
  /** Undefined: any quality. */
  readonly quality: string | undefined
  readonly size: string
  readonly pixels: number
  readonly tokens: number
}

/**
 * Tokens of one picture, from above. A size that the table does not list counts by its pixels, at the dearest listed
 * tokens a pixel, and never less than the smallest listed picture. A size or quality that the vendor chooses counts as the
 * dearest one.
 */
export function pictureTokens(table: TokenTable, size: string, quality: string): number {
  const all = Object.entries(table).flatMap(([key, tokens]) => entryOf(key, tokens))
  const fitting = all.filter((entry) => entry.quality === undefined || entry.quality === quality)
  const entries = fitting.length > 0 ? fitting : all
  if (entries.length === 0) return table['default'] ?? 0
  const listed = entries.filter((entry) => entry.size === size)
  if (listed.length > 0) return highest(listed.map((entry) => entry.tokens))
  const asked = parsePixelSize(size)
  const known = entries.map((entry) => entry.tokens)
  if (asked === undefined) return table['default'] ?? highest(known)
  const pixels = asked.width * asked.height
  const scaled = entries.map((entry) => Math.ceil((entry.tokens * pixels) / entry.pixels))
  return Math.max(highest(scaled), Math.min(...known))
}

function entryOf(key: string, tokens: number): Entry[] {
  const [first = '', second] = key.split(' ')
  const size = second ?? first
  const pixels = parsePixelSize(size)
  if (pixels === undefined) return []
  const quality = second === undefined ? undefined : first
  return [{ quality, size, pixels: pixels.width * pixels.height, tokens }]
}

function highest(numbers: readonly number[]): number {
  return Math.max(...numbers)
}
