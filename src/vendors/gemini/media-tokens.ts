import type { MediaFacts, MediaRules } from '../vendor.ts'

// Gemini API, "Understand and count tokens", https://ai.google.dev/gemini-api/docs/tokens.
const TILE_TOKENS = 258
const SMALL_SIDE = 384
const TILE_SIDES = { min: 256, max: 768 } as const
const AUDIO_TOKENS_PER_SECOND = 32
const PAGE_TOKENS = 258
/** An estimate for images of unknown size: 3,840 × 2,160 pixels. */
const UNKNOWN_IMAGE_TOKENS = 5 * 3 * TILE_TOKENS

// From version 3 on, an image has 1,120 tokens by default. A page has 560 by default, and 1,120 at high resolution (Gemini API,
// "Media resolution", https://ai.google.dev/gemini-api/docs/media-resolution).
const FIXED_IMAGE_TOKENS = 1_120
const FIXED_PAGE_TOKENS = 1_120

const CONTEXT_TOKENS = 1_048_576

/** Gemini's rules for images, audio and PDF files. */
export const geminiMedia: MediaRules = {
  tokens(media, upstream) {
    const { kind, seconds, pages } = media
    const isFixed = Number(/^gemini-(\d+)/.exec(upstream)?.[1] ?? 3) >= 3
    if (kind === 'image') return isFixed ? FIXED_IMAGE_TOKENS : tiledTokens(media)
    if (kind === 'audio' && seconds !== undefined) return seconds * AUDIO_TOKENS_PER_SECOND
    return pages === undefined ? undefined : pages * (isFixed ? FIXED_PAGE_TOKENS : PAGE_TOKENS)
  },
  contextTokens: (upstream) =>
    upstream.startsWith('gemini-') && !upstream.includes('-image') ? CONTEXT_TOKENS : undefined,
}

/** An image is cut into tiles whose side is two thirds of its shorter side, within bounds. */
function tiledTokens({ width, height }: MediaFacts): number {
  if (width === undefined || height === undefined) return UNKNOWN_IMAGE_TOKENS
  if (width <= SMALL_SIDE && height <= SMALL_SIDE) return TILE_TOKENS
  const side = Math.min(TILE_SIDES.max, Math.max(TILE_SIDES.min, Math.floor(Math.min(width, height) / 1.5)))
  return Math.ceil(width / side) * Math.ceil(height / side) * TILE_TOKENS
}
