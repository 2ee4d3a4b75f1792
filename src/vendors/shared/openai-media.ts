import type { MediaFacts, MediaRules } from '../vendor.ts'

/**
 * How OpenAI counts image tokens (OpenAI, "Images and vision", calculating costs,
 * https://developers.openai.com/api/docs/guides/images-vision): by tiles of 512 × 512 pixels, or by patches of 32 × 32.
 */
type ImageRule =
  | { readonly by: 'tiles'; readonly base: number; readonly tile: number }
  | { readonly by: 'patches'; readonly factor: number; readonly most: number; readonly mostOriginal: number }

const tiles = (base: number, tile: number): ImageRule => ({ by: 'tiles', base, tile })
const patches = (factor: number, most = 1536, mostOriginal = most): ImageRule => ({
  by: 'patches',
  factor,
  most,
  mostOriginal,
})

/**
 * The first row that an id starts with applies. Observed bills are within the rules: the guide's 1.62 and 2.46 of gpt-5-mini and
 * -nano are billed as 1.2 and 1.5 (OpenAI community, topic 1344040), and gpt-5.2 by 1.2 (topic 1372291). The limits of 2,500 and
 * 10,000 patches, and windows above 400,000 tokens of models since gpt-5.4, are upper estimates that no second page confirms.
 */
const RULES: readonly (readonly [prefix: string, rule: ImageRule, contextTokens: number])[] = [
  ['gpt-4o-mini', tiles(2833, 5667), 128_000],
  ['gpt-4o', tiles(85, 170), 128_000],
  ['chatgpt-4o', tiles(85, 170), 128_000],
  ['gpt-4-turbo', tiles(85, 170), 128_000],
  ['gpt-4.5', tiles(85, 170), 128_000],
  ['gpt-4.1-mini', patches(1.62), 1_047_576],
  ['gpt-4.1-nano', patches(2.46), 1_047_576],
  ['gpt-4.1', tiles(85, 170), 1_047_576],
  ['o4-mini', patches(1.72), 200_000],
  ['o1', tiles(75, 150), 200_000],
  ['o3', tiles(75, 150), 200_000],
  ['gpt-5-mini', patches(1.62), 272_000],
  ['gpt-5-nano', patches(2.46), 272_000],
  ['gpt-5.1', tiles(70, 140), 272_000],
  ['gpt-5.2', patches(1.62), 272_000],
  ['gpt-5.3', patches(1.62), 272_000],
  ['gpt-5.', patches(1.62, 2500, 10_000), 1_050_000],
  ['gpt-5', tiles(70, 140), 272_000],
]

/** For models not in the table: the newest rule, at a factor above that of all but the smallest models. */
const NEWEST = patches(1.72, 2500, 10_000)

/** Audio input: a token per tenth of a second (OpenAI, "Managing costs" of realtime; community topic 971012). */
const AUDIO_TOKENS_PER_SECOND = 10

/** A page is read as text and as an image (OpenAI, "File inputs"). Its tokens and pixels are estimates. */
const TEXT_TOKENS_PER_PAGE = 1_500
const PAGE = { kind: 'image', width: 1_240, height: 1_754 } as const

/** OpenAI's rules for images, audio and PDF files. */
export const openaiMedia: MediaRules = {
  tokens(media, upstream) {
    const rule = ruleOf(upstream)
    if (media.kind === 'image') return imageTokens(media, rule)
    if (media.kind === 'audio' && media.seconds !== undefined) return media.seconds * AUDIO_TOKENS_PER_SECOND
    if (media.pages !== undefined) return media.pages * (TEXT_TOKENS_PER_PAGE + imageTokens(PAGE, rule))
    return undefined
  },
  contextTokens: (upstream) => RULES.find(([prefix]) => upstream.startsWith(prefix))?.[2],
}

function ruleOf(upstream: string): ImageRule {
  return RULES.find(([prefix]) => upstream.startsWith(prefix))?.[1] ?? NEWEST
}

function imageTokens({ width, height, detail }: MediaFacts, rule: ImageRule): number {
  if (rule.by === 'tiles') {
    if (detail === 'low') return rule.base
    return rule.base + rule.tile * (width === undefined || height === undefined ? MOST_TILES : tileCount(width, height))
  }
  const most = detail === 'original' ? rule.mostOriginal : rule.most
  const needed = width === undefined || height === undefined ? most : Math.ceil(width / 32) * Math.ceil(height / 32)
  return Math.ceil(Math.min(needed, most) * rule.factor)
}

const TILE = 512
const LONGEST_SIDE = 2048
const SHORTER_SIDE = 768
/** Two rows of four: 768 × 2,048 pixels. */
const MOST_TILES = 8

/** An image is scaled to fit 2,048 × 2,048, then to a shorter side of 768. Smaller images are not enlarged. */
function tileCount(width: number, height: number): number {
  const fitting = Math.min(1, LONGEST_SIDE / Math.max(width, height))
  const scale = fitting * Math.min(1, SHORTER_SIDE / (Math.min(width, height) * fitting))
  // The vendor does not document how it rounds sizes, so one more pixel is counted.
  return Math.min(MOST_TILES, Math.ceil((width * scale + 1) / TILE) * Math.ceil((height * scale + 1) / TILE))
}
