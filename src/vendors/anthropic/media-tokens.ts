import { modelAbilities } from '../shared/messages-abilities.ts'
import type { MediaRules } from '../vendor.ts'

/**
 * Width × height ÷ 750, or one token per 28 × 28 pixels, whichever is more (Anthropic, "Vision",
 * https://platform.claude.com/docs/en/build-with-claude/vision, which had the first rule before the second).
 */
const PIXELS_PER_TOKEN = 750
const PATCH_SIDE = 28

/**
 * A page is read as text, of 1,500 to 3,000 tokens, and as an image (Anthropic, "PDF support",
 * https://docs.anthropic.com/en/docs/build-with-claude/pdf-support).
 */
const TEXT_TOKENS_PER_PAGE = 3_000
/** An estimate for every model: the maximum tokens of an image before 4.7. The size of rendered pages is not documented. */
const PAGE_IMAGE_TOKENS = 1_600

/** Anthropic's rules for images and PDF files. It does not support audio. */
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
