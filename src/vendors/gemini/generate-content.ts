import { WorkBudget } from '../../core/calls-in-flight.ts'
import { exactJsonText } from '../../core/exact-json.ts'
import { isJsonObject, parseVendorJson } from '../../core/json.ts'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import type { InteractionRequest } from '../../endpoints/images/interactions/interaction-request.ts'
import type {
  ImageOperation,
  MediaFacts,
  MediaRules,
  TokenCountOperation,
  Vendor,
  VendorCall,
  WireRequest,
} from '../vendor.ts'
import { apiRequestHead, type GeminiApi, modelResource } from './api-request.ts'
import { brokenAnswer, chatDecoder, chatFromWire } from './chat-from-wire.ts'
import { chatToWire, SURCHARGES_LEFT_OUT, toolsToWire } from './chat-to-wire.ts'
import { conversationToWire } from './conversation-to-wire.ts'
import { GeneratedImageStream, generatedImageFromWire, generatedImageToWire } from './interactions/generated-images.ts'
import { modelAbilities, ownsReasoning, thinks } from './model-abilities.ts'

/** Creates the operations that both variants of the API offer. */
export function generateContent(
  api: GeminiApi,
): Required<Pick<Vendor, 'chat' | 'tokenCount' | 'media' | 'ownsReasoning'>> {
  return {
    chat: {
      toWire: (call) => chatToWire(call, api),
      leavesOut: SURCHARGES_LEFT_OUT,
      fromWire: chatFromWire,
      brokenAnswer,
      decoder: chatDecoder,
      hasHiddenReasoning: ({ model, request }) =>
        thinks(request.reasoning_effort, modelAbilities(model.upstream).thinking),
      takesImageUrls: (model) => modelAbilities(model.upstream).fetchesUrls,
      takesFileUrls: (model) => modelAbilities(model.upstream).fetchesUrls,
    },
    tokenCount: countTokens(api),
    media: geminiMedia,
    ownsReasoning,
  }
}

/** Image generation through the method of chat. */
export function generatedImages({ basePath }: GeminiApi): ImageOperation<InteractionRequest> {
  return {
    toWire: (call) => generatedImageToWire(call, basePath),
    fromWire: generatedImageFromWire,
    stream: (call) => new GeneratedImageStream(call),
  }
}

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
const geminiMedia: MediaRules = {
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

/**
 * Counts a chat by `countTokens` (Gemini API, "Counting tokens"). The whole request is sent, because contents alone would
 * omit the system prompt and the functions.
 */
function countTokens(api: GeminiApi): TokenCountOperation {
  return {
    toWire: (call) => countTokensToWire(call, api),
    fromWire({ body }) {
      const answer = parseVendorJson(new TextDecoder().decode(body))
      const total = isJsonObject(answer) ? answer['totalTokens'] : undefined
      return typeof total === 'number' && Number.isSafeInteger(total) && total >= 0 ? total : undefined
    },
  }
}

function countTokensToWire({ request, model, apiKey }: VendorCall<ChatRequest>, api: GeminiApi): WireRequest {
  const abilities = modelAbilities(model.upstream)
  const dropped = new Set<string>()
  const report = (field: string): void => void dropped.add(field)
  const { systemInstruction, contents } = conversationToWire(request.messages, abilities, report, api.hasCallIds)
  const counted = {
    ...(systemInstruction === undefined ? {} : { systemInstruction }),
    contents,
    ...toolsToWire(request, abilities, new WorkBudget(), report),
  }
  return {
    ...apiRequestHead({ basePath: api.basePath, model: model.upstream, method: 'countTokens', apiKey }),
    body: exactJsonText(
      api.wrapsCounts ? { generateContentRequest: { model: modelResource(model.upstream), ...counted } } : counted,
    ),
    dropped: [...dropped],
  }
}
