import type { MediaRules } from '../vendor.ts'
import { modelAbilities } from './model-abilities.ts'

/** Width × height ÷ 750, or a token for 28 × 28 pixels: whichever is more (Anthropic, "Vision", image costs). */
const PIXELS_PER_TOKEN = 750
const PATCH_SIDE = 28

/** A page is read as text, of at most so many tokens, and as a picture (Anthropic, "PDF support", costs). */
const TEXT_TOKENS_PER_PAGE = 3_000
/** Pages are made into pictures of this size at most, which an older model reads in full. */
const PAGE_IMAGE_TOKENS = 1_600

/** Anthropic's rules for pictures and PDF files; it takes no sound. */
export const anthropicMedia: MediaRules = {
  tokens({ kind, width, height, pages }, upstream) {
    const { maxImageTokens } = modelAbilities(upstream)
    if (kind === 'image') {
      if (width === undefined || height === undefined) return maxImageTokens
      const patches = Math.ceil(width / PATCH_SIDE) * Math.ceil(height / PATCH_SIDE)
      return Math.min(maxImageTokens, Math.max(patches, Math.ceil((width * height) / PIXELS_PER_TOKEN)))
    }
    return pages === undefined ? undefined : pages * (TEXT_TOKENS_PER_PAGE + PAGE_IMAGE_TOKENS)
  },
  contextTokens: (upstream) => modelAbilities(upstream).contextTokens,
}
