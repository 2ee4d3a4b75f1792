import type { MediaRules } from '../vendor.ts'

// One token per 28 × 28 pixels (32 × 32 for newer models) and two marks, from 4 to 16,384 (Model Studio, "Visual understanding",
// https://www.alibabacloud.com/help/en/model-studio/vision). `qwen_vl_utils` computes the same.
const PATCH_SIDE = 28
const MARKS = 2
const FEWEST_PATCHES = 4
const MOST_PATCHES = 16_384

/** 25 tokens per second, and at least one second (Model Studio, "Audio understanding"). Not confirmed by another page. */
const AUDIO_TOKENS_PER_SECOND = 25

/** Maximum tokens of a document and of a call (Model Studio, text rerank). */
const RERANK = /^qwen3-vl-rerank/
const MOST_DOCUMENT_TOKENS = 8_000
const MOST_RERANK_TOKENS = 120_000

/** DashScope's rules for images and audio. */
export const dashscopeMedia: MediaRules = {
  tokens({ kind, width, height, seconds }, upstream) {
    if (kind === 'image') {
      const tokens = pictureTokens(width, height)
      return RERANK.test(upstream) ? Math.min(tokens, MOST_DOCUMENT_TOKENS) : tokens
    }
    return kind === 'audio' && seconds !== undefined ? Math.max(1, seconds) * AUDIO_TOKENS_PER_SECOND : undefined
  },
  contextTokens: (upstream) => (RERANK.test(upstream) ? MOST_RERANK_TOKENS : undefined),
}

function pictureTokens(width: number | undefined, height: number | undefined): number {
  if (width === undefined || height === undefined) return MOST_PATCHES + MARKS
  const patches = Math.ceil(width / PATCH_SIDE) * Math.ceil(height / PATCH_SIDE)
  return Math.min(MOST_PATCHES, Math.max(FEWEST_PATCHES, patches)) + MARKS
}
