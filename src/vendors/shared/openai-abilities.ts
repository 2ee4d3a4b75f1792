import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import type { ChatAbilities } from '../../endpoints/chat/chat-schema.ts'
import { searchParam } from '../../endpoints/chat/chat-surcharges.ts'
import type { PriceMember, PriceMembers } from '../../endpoints/price-members.ts'
import type { MediaFacts, MediaRules } from '../vendor.ts'
import { effortUnseen, hasHiddenReasoning } from './reasoning.ts'

const LOW_TO_HIGH = ['low', 'medium', 'high'] as const
const LOW_TO_XHIGH = [...LOW_TO_HIGH, 'xhigh'] as const

/**
 * Efforts of OpenAI's models that the catalog does not know, such as fine-tuned ones and deployments; the first pattern that fits
 * counts (OpenAI, "Models": the page of each; "Reasoning models"). The efforts of other models are not known.
 */
const EFFORTS: readonly (readonly [pattern: RegExp, efforts: readonly string[]])[] = [
  [/^(?:gpt-(?:[34]|[\d.]+-chat)|chat|o1-(?:mini|preview)|o\d(?:-mini)?-deep-research)/, []],
  [/^(?:o\d|codex-mini|gpt-5(?:\.1)?-codex)/, LOW_TO_HIGH],
  [/^gpt-5-pro/, ['high']],
  [/^gpt-5\.\d-pro/, ['medium', 'high', 'xhigh']],
  [/^gpt-5\.\d-codex/, LOW_TO_XHIGH],
  [/^gpt-5(?!\.)/, ['minimal', ...LOW_TO_HIGH]],
  [/^gpt-5\.1(?!\d)/, ['none', ...LOW_TO_HIGH]],
  [/^gpt-5\.[2-5](?!\d)/, ['none', ...LOW_TO_XHIGH]],
]

/**
 * Returns what a model of OpenAI's accepts. While models reason, they reject stop sequences and every temperature except the
 * default (OpenAI, API reference, `stop`; "Reasoning models").
 * @param listed Efforts that the catalog lists for the model.
 */
export function openaiAbilities(model: string, listed: readonly string[] | undefined): ChatAbilities {
  const base = model.replace(/^ft:/, '')
  return {
    efforts: listed ?? EFFORTS.find(([pattern]) => pattern.test(base))?.[1],
    rejectedFields: (effort) => (effortUnseen(model, effort) ? ['temperature', 'top_p', 'stop'] : []),
  }
}

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
    return rule.base + rule.tile * (width === undefined || height === undefined ? MAX_TILES : tileCount(width, height))
  }
  const most = detail === 'original' ? rule.mostOriginal : rule.most
  const needed = width === undefined || height === undefined ? most : Math.ceil(width / 32) * Math.ceil(height / 32)
  return Math.ceil(Math.min(needed, most) * rule.factor)
}

const TILE = 512
const MAX_SIDE = 2048
const SHORTER_SIDE = 768
/** Two rows of four: 768 × 2,048 pixels. */
const MAX_TILES = 8

/** An image is scaled to fit 2,048 × 2,048, then to a shorter side of 768. Smaller images are not enlarged. */
function tileCount(width: number, height: number): number {
  const fitting = Math.min(1, MAX_SIDE / Math.max(width, height))
  const scale = fitting * Math.min(1, SHORTER_SIDE / (Math.min(width, height) * fitting))
  // The vendor does not document how it rounds sizes, so one more pixel is counted.
  return Math.min(MAX_TILES, Math.ceil((width * scale + 1) / TILE) * Math.ceil((height * scale + 1) / TILE))
}

/** Places of tools in a request: its own, those in namespaces, and those that items of the input bring. */
const TOOLS = ['tools[]', 'tools[].tools[]', 'input[].tools[]', 'input[].tools[].tools[]'] as const

/** A container costs by its memory, from $0.03 for `1g` to $1.92 for `64g` (OpenAI, "Pricing", built-in tools, November 2026). */
const CONTAINERS = TOOLS.flatMap((tools) =>
  ['container', 'environment'].map((holder): PriceMember => {
    return { path: `${tools}.${holder}.memory_limit`, field: 'container_memory', ordinary: ['1g'] }
  }),
)

/**
 * Images that a model plans, animates or writes as SVG need more computation than one image of their size and quality (OpenAI API,
 * "Create image": `complexity`, `frame_count`, `svg`).
 */
const IMAGES: readonly PriceMember[] = [
  { path: 'complexity', field: 'complexity' },
  { path: 'output_format', field: 'output_format', ordinary: ['png', 'jpeg', 'webp'] },
  { path: 'frame_count', field: 'frame_count' },
  { path: 'svg', field: 'svg' },
]

/** The image tool has the members of the images endpoints, and `svg` may name another model that writes the image. */
const IMAGE_TOOLS = TOOLS.flatMap((tools) =>
  IMAGES.map((member): PriceMember => ({ ...member, path: `${tools}.${member.path}` })),
)

/** Price members of servers with OpenAI's API. The price fields of the endpoints have the others: service tiers, searches, tools, size, quality. */
export const OPENAI_PRICE_MEMBERS: PriceMembers = {
  responses: [...CONTAINERS, ...IMAGE_TOOLS],
  images: IMAGES,
  image_edits: IMAGES,
}

/** From gpt-5.4 on, including fine-tuned models. Azure writes gpt-3.5-turbo as `gpt-35-turbo`. */
const MODEL = /^(?:ft:)?gpt-(?:5\.(?:[4-9]|\d\d)|[6-9]|[12]\d)/

/**
 * Whether a model, by the vendor's own id, accepts this chat's functions only through Responses. Chat completions answer 400 to
 * functions together with reasoning, even at the default effort: "Function tools with reasoning_effort are not supported for
 * gpt-5.4 in /v1/chat/completions. Please use /v1/responses instead." (https://github.com/openai/openai-openapi/issues/541; for a
 * default effort https://github.com/danny-avila/LibreChat/issues/14355).
 */
export function takesToolsByResponses(upstream: string, chat: ChatRequest): boolean {
  const { tools } = chat
  if (!Array.isArray(tools) || !tools.some(({ type }) => type === 'function')) return false
  // Without a protocol in the model's row, one search is charged, but Responses may make many, so such a chat stays rejected.
  return MODEL.test(upstream) && hasHiddenReasoning(upstream, chat) && searchParam(chat) === undefined
}
